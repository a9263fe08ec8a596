// The flight recorder (S-3): its files replay to the same outcomes and state; they are bounded and self-contained;
// their faults affect only the recording.
#include "service/recorder/recorder.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "state/recording/recording.h"
#include "tests/service/engine/engine_fixture.h"
#include "tests/support/expect_ok.h"
#include "tests/support/test_folder.h"
#include "tests/support/warm_libraries.h"
#include "tests/verify/hash.h"

namespace muster {
namespace {

constexpr absl::Duration kSoon = absl::Seconds(10);

// The result of the replay of one file.
struct Replayed {
  absl::Status status;
  SegmentHeader header;
  SegmentEnding ending;
  int64_t commands = 0;
  int64_t different = 0;  // outcomes that differ
  uint64_t opened = 0;    // the state's hash at the beginning
  uint64_t ended = 0;
  uint64_t ended_logically = 0;
};

uint64_t HashOf(Machine* machine) {
  std::vector<std::string> gangs, nodes;
  machine->TakeChanged(&gangs, &nodes);
  return recording::StateHash(*machine);
}

Replayed ReplayFile(const std::string& path) {
  Replayed out;
  absl::StatusOr<SegmentReader> segment = SegmentReader::Open(path);
  out.status = segment.status();
  if (!segment.ok()) return out;
  out.header = segment->header();
  Machine machine(segment->settings());
  out.status = recording::RestoreState(segment->state(), &machine);
  if (!out.status.ok()) return out;
  out.opened = HashOf(&machine);
  SegmentReader::Entry entry;
  for (;;) {
    const absl::StatusOr<bool> more = segment->Next(&entry);
    out.status = more.status();
    if (!more.ok() || !*more) break;
    Outcome outcome;
    machine.Apply(entry.command, entry.now_ms, &outcome);
    ++out.commands;
    out.different += static_cast<uint32_t>(recording::DigestOf(outcome)) == entry.digest ? 0 : 1;
  }
  out.ending = segment->ending();
  out.ended = HashOf(&machine);
  out.ended_logically = LogicalHash(machine);
  return out;
}

class RecorderTest : public testing::Test {
 protected:
  RecorderTest() {
    WarmLibraries();
    options_.path = folder_ / "muster.rec";
    options_.version = "1.2.3";
    options_.retry = absl::Milliseconds(20);
  }

  void Open() {
    recorder_ = ExpectOk(Recorder::Open(options_));
    ASSERT_NE(recorder_, nullptr);
    EngineOptions options;
    options.recorder = recorder_.get();
    engine_ = std::make_unique<Engine>(options_.settings, options, &store_, &sink_);
    ASSERT_TRUE(engine_->Start().ok());
    ASSERT_TRUE(engine_->Announce(UpsertNode{SomeNode()}).ok());
    ASSERT_TRUE(engine_->Announce(FactsRead{}).ok());
  }
  // `gangs` gangs of two are created, queried, and removed after a while.
  void Work(int gangs) {
    for (int i = 0; i < gangs; ++i) {
      const std::string gang = absl::StrCat("g", next_++);
      for (const char* member : {"-0", "-1"}) {
        ASSERT_TRUE(engine_->Announce(UpsertPod{SomePod(gang + member, gang, 2)}).ok());
      }
      const auto offer = std::make_shared<const NodeOffer>(std::vector<std::string>{"n", absl::StrCat("m", i % 7)});
      ASSERT_TRUE(engine_->Ask(Filter{absl::StrCat("u-", gang, "-0"), offer}).ok());
      for (const char* member : {"-0", "-1"}) {
        ASSERT_TRUE(engine_->Announce(RemovePod{absl::StrCat("u-g", next_ - 20, member)}).ok());
      }
    }
  }
  void Close() {
    engine_->Stop();
    recorder_->Stop();
  }
  // Waits until the recorder has written this number of commands.
  void AwaitWritten(int64_t commands) {
    const absl::Time end = SteadyNow() + kSoon;
    while (recorder_->stats().commands < commands && SteadyNow() < end) absl::SleepFor(absl::Milliseconds(1));
    ASSERT_GE(recorder_->stats().commands, commands) << recorder_->stats().last_error;
  }
  // The contents of a finished file.
  std::string RecordThreeFrames() {
    Open();
    for (int frames = 1; frames <= 3; ++frames) {
      Work(5);
      AwaitWritten(25 * frames);  // and rounds of planning, if any
    }
    Close();
    std::ifstream in(options_.path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  [[nodiscard]] std::string Older(int age) const {
    return age == 0 ? options_.path : absl::StrCat(options_.path, ".", age);
  }
  // The newest first.
  [[nodiscard]] std::vector<std::string> Files() const {
    std::vector<std::string> files;
    while (std::filesystem::exists(Older(static_cast<int>(files.size())))) {
      files.push_back(Older(static_cast<int>(files.size())));
    }
    return files;
  }

  // The replays of all files, which succeed; the oldest first.
  [[nodiscard]] std::vector<Replayed> ReplayAll() const {
    std::vector<Replayed> replays;
    for (const std::string& file : Files()) {
      const Replayed& replayed = *replays.insert(replays.begin(), ReplayFile(file));
      EXPECT_TRUE(replayed.status.ok()) << file << ": " << replayed.status;
      EXPECT_EQ(replayed.different, 0) << file;
    }
    return replays;
  }

  TestFolder folder_;
  RecorderOptions options_;
  MemoryStore store_;
  CountingSink sink_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Engine> engine_;
  int next_ = 0;
};

TEST_F(RecorderTest, Recording_ReplaysToSameState) {
  Open();
  Work(200);
  uint64_t hash = 0;
  ASSERT_TRUE(engine_->ReadDurableSync([&](const Machine& machine) { hash = LogicalHash(machine); }).ok());
  Close();
  struct stat info {};
  ASSERT_EQ(stat(options_.path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  const Replayed replayed = ReplayFile(options_.path);
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_EQ(replayed.header.version, "1.2.3");
  EXPECT_EQ(replayed.header.first_command, 1);
  EXPECT_TRUE(replayed.header.first_of_process);
  EXPECT_GT(replayed.commands, 700);
  EXPECT_EQ(replayed.different, 0);
  EXPECT_EQ(replayed.ending.why, SegmentEnd::kStopped);
  EXPECT_EQ(replayed.ending.commands, replayed.commands);
  EXPECT_EQ(replayed.ending.state_hash, replayed.ended);
  EXPECT_EQ(replayed.ended_logically, hash);
  const RecorderStats stats = recorder_->stats();
  EXPECT_EQ(stats.commands, replayed.commands);
  EXPECT_EQ(stats.lost, 0);
  EXPECT_EQ(stats.bytes, info.st_size);
}

TEST_F(RecorderTest, Files_AreBoundedSelfContainedAndConsecutive) {
  options_.max_bytes = 1'000'000;
  Open();
  for (int round = 0; round < 30; ++round) {
    Work(400);
    AwaitWritten(recorder_->stats().commands + 1);
  }
  Close();
  EXPECT_EQ(recorder_->stats().lost, 0);
  EXPECT_GT(recorder_->stats().bytes, options_.max_bytes * 2) << "nothing had to go";
  const std::vector<std::string> files = Files();
  EXPECT_GE(files.size(), 2U);
  int64_t bytes = 0;
  for (const std::string& file : files) bytes += static_cast<int64_t>(std::filesystem::file_size(file));
  EXPECT_LE(bytes, options_.max_bytes + (128 << 10)) << "and what was waiting when one was full";
  const std::vector<Replayed> replays = ReplayAll();
  for (size_t i = 0; i < replays.size(); ++i) {
    EXPECT_EQ(replays[i].ending.commands, replays[i].commands);
    EXPECT_EQ(replays[i].ending.why, i + 1 == replays.size() ? SegmentEnd::kStopped : SegmentEnd::kFull);
    if (i == 0) continue;
    EXPECT_EQ(replays[i].header.first_command, replays[i - 1].header.first_command + replays[i - 1].commands);
    EXPECT_EQ(replays[i].opened, replays[i - 1].ended);
  }
}

// The next process retains the files of the previous one, which may have been killed.
TEST_F(RecorderTest, NextProcess_MovesFileAside) {
  Open();
  Work(10);
  AwaitWritten(10);
  std::filesystem::copy_file(options_.path, folder_ / "as-when-killed");
  Close();
  std::filesystem::rename(folder_ / "as-when-killed", options_.path);
  Open();
  Work(10);
  Close();
  const Replayed killed = ReplayFile(Older(1));
  EXPECT_TRUE(killed.status.ok()) << killed.status;
  EXPECT_EQ(killed.ending.why, SegmentEnd::kNone);
  EXPECT_EQ(killed.different, 0);
  EXPECT_GE(killed.commands, 10);
  const Replayed now = ReplayFile(options_.path);
  EXPECT_TRUE(now.status.ok()) << now.status;
  EXPECT_TRUE(now.header.first_of_process);
  EXPECT_EQ(now.ending.why, SegmentEnd::kStopped);
}

TEST_F(RecorderTest, SecondProcess_IsRefused) {
  Open();
  Work(10);
  AwaitWritten(10);
  const absl::StatusOr<std::unique_ptr<Recorder>> second = Recorder::Open(options_);
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
  EXPECT_TRUE(absl::StrContains(second.status().message(), "is being written by another musterd"));
  Work(10);
  Close();
  EXPECT_GT(ReplayFile(options_.path).commands, 60);
  EXPECT_EQ(Files().size(), 1U);
  EXPECT_TRUE(std::filesystem::exists(folder_ / ".muster.rec.lock"));
}

TEST_F(RecorderTest, ForeignFile_IsNotOverwritten) {
  for (const std::string& name : {options_.path, Older(1)}) {
    { std::ofstream(options_.path) << ""; }
    { std::ofstream(name) << "somebody's only copy"; }
    const absl::StatusOr<std::unique_ptr<Recorder>> recorder = Recorder::Open(options_);
    ASSERT_FALSE(recorder.ok());
    EXPECT_EQ(recorder.status().message(),
              absl::StrCat("recording.file: ", name, " exists and is not a readable recording; use another file"));
    std::filesystem::remove(name);
  }
  // A path that is no regular file is not treated as an empty one.
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  options_.path = pipe;
  EXPECT_FALSE(Recorder::Open(options_).ok());
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  options_.path = "/dev/null";
  EXPECT_FALSE(Recorder::Open(options_).ok());
  options_.path = folder_ / "nowhere/muster.rec";
  EXPECT_EQ(Recorder::Open(options_).status().message(),
            absl::StrCat("recording.file: ", options_.path, ": cannot write into ", folder_.path(),
                         "/nowhere; it must exist and be writable: No such file or directory"));
}

// Commands faster than the disk: some are left out and counted, the file records the gap, and the next file opens with
// the current state.
TEST_F(RecorderTest, CommandsFasterThanDisk_AreDroppedAndCounted) {
  options_.max_waiting = 20'000;
  Open();
  const absl::Time end = SteadyNow() + kSoon;
  NodeDescription large = SomeNode();
  large.name = std::string(options_.max_waiting, 'n');
  while (recorder_->stats().lost == 0 && SteadyNow() < end) {
    ASSERT_TRUE(engine_->Announce(UpsertNode{large}).ok());
    Work(10);  // on any machine, the first of these comes before that is written
  }
  ASSERT_GT(recorder_->stats().lost, 0);
  const int64_t written = recorder_->stats().commands;
  while (recorder_->stats().commands < written + 5 && SteadyNow() < end) {
    Work(1);
    absl::SleepFor(absl::Milliseconds(60));  // the time that it takes to be written
  }
  Close();
  const std::vector<Replayed> replays = ReplayAll();
  ASSERT_GE(replays.size(), 2U);
  int gaps = 0;
  int64_t commands = 0;
  Replayed before;
  for (const Replayed& replayed : replays) {
    if (before.ending.why == SegmentEnd::kGap) {
      EXPECT_GT(replayed.header.first_command, before.header.first_command + before.commands);
    }
    gaps += replayed.ending.why == SegmentEnd::kGap ? 1 : 0;
    commands += replayed.commands;
    before = replayed;
  }
  EXPECT_GT(gaps, 0);
  EXPECT_EQ(commands, recorder_->stats().commands);
  EXPECT_EQ(commands + recorder_->stats().lost, before.header.first_command + before.commands - 1);
}

// A state larger than the limit for pending commands does not displace them.
TEST_F(RecorderTest, LargeState_LeavesRoomForCommands) {
  Machine machine(options_.settings);
  Outcome outcome;
  for (int i = 0; i < 300; ++i) {
    const std::string gang = absl::StrCat("g", i);
    machine.Apply(UpsertPod{SomePod(gang, gang, 2)}, 1'000, &outcome);
  }
  options_.max_waiting = 20'000;
  ASSERT_GT(recording::SaveState(machine).size(), options_.max_waiting);
  absl::StatusOr<std::unique_ptr<Recorder>> recorder = Recorder::Open(options_);
  ASSERT_TRUE(recorder.ok()) << recorder.status();
  for (int i = 0; i < 50; ++i) {
    Outcome ticked;
    (*recorder)->BeforeApply(machine, 2'000 + i);
    machine.Apply(Tick{}, 2'000 + i, &ticked);
    (*recorder)->AfterApply(Tick{}, 2'000 + i, ticked);
  }
  (*recorder)->Stop();
  EXPECT_EQ((*recorder)->stats().lost, 0);
  const Replayed replayed = ReplayFile(options_.path);
  EXPECT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_EQ(replayed.commands, 50);
  EXPECT_EQ(replayed.different, 0);
}

// A file cannot be created or written: decisions continue and the error is reported; when it is over, so is the gap.
TEST_F(RecorderTest, FailingDisk_AffectsRecordingOnly) {
  signal(SIGXFSZ, SIG_IGN);
  Open();
  Work(10);
  AwaitWritten(10);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit none = before;
  none.rlim_cur = std::filesystem::file_size(options_.path);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  const absl::Time end = SteadyNow() + kSoon;
  while (recorder_->stats().last_error.empty() && SteadyNow() < end) Work(20);
  const std::string trouble = recorder_->stats().last_error;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(trouble, absl::StrCat("cannot write ", options_.path, ": File too large"));
  while (!recorder_->stats().last_error.empty() && SteadyNow() < end) {
    Work(1);
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(recorder_->stats().last_error, "");
  EXPECT_GT(recorder_->stats().lost, 0);
  Work(10);
  Close();
  EXPECT_EQ(ReplayAll().back().ending.why, SegmentEnd::kStopped);
}

// Failed attempts, however many, retain earlier recordings and their order.
TEST_F(RecorderTest, FailedAttempts_RetainOldFiles) {
  signal(SIGXFSZ, SIG_IGN);
  for (int life = 0; life < 3; ++life) {
    Open();
    Work(5);
    AwaitWritten(10);
    Close();
  }
  std::filesystem::remove(Older(1));  // removed by another process
  const auto oldest = std::filesystem::file_size(Older(2));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 1'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  Open();
  const absl::Time end = SteadyNow() + absl::Milliseconds(200);  // ten attempts
  while (SteadyNow() < end) Work(1);
  const std::string trouble = recorder_->stats().last_error;
  Close();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_NE(trouble.find("File too large"), std::string::npos) << trouble;
  EXPECT_FALSE(std::filesystem::exists(options_.path + ".new"));
  EXPECT_EQ(std::filesystem::file_size(Older(2)), oldest);
  Open();
  Work(5);
  AwaitWritten(10);
  Close();
  EXPECT_EQ(ReplayFile(Older(1)).ending.why, SegmentEnd::kStopped);
  EXPECT_EQ(Files().size(), 3U) << "the hole is closed, and nothing was written over";
  EXPECT_EQ(std::filesystem::file_size(Older(2)), oldest);
}

// The deletion of the current file is detected, and another one is begun.
TEST_F(RecorderTest, RemovedFile_IsReplaced) {
  Open();
  Work(5);
  AwaitWritten(10);
  std::filesystem::remove(options_.path);
  const absl::Time end = SteadyNow() + kSoon;
  while (!std::filesystem::exists(options_.path) && SteadyNow() < end) {
    Work(1);
    absl::SleepFor(absl::Milliseconds(5));
  }
  Close();
  EXPECT_GT(recorder_->stats().lost, 0);
  const Replayed replayed = ReplayFile(options_.path);
  EXPECT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_FALSE(replayed.header.first_of_process);
}

TEST_F(RecorderTest, StateLargerThanFile_ReportsError) {
  options_.max_bytes = 4'000;
  Open();
  Work(20);
  const absl::Time end = SteadyNow() + kSoon;
  while (recorder_->stats().last_error.empty() && SteadyNow() < end) Work(20);
  EXPECT_NE(recorder_->stats().last_error.find("leaves no room for commands; set it to"), std::string::npos)
      << recorder_->stats().last_error;
  Close();
}

// A file that is truncated or damaged anywhere yields only correct contents.
TEST_F(RecorderTest, DamagedFile_IsNeverMisread) {
  const std::string bytes = RecordThreeFrames();
  const Replayed whole = ReplayFile(options_.path);
  const std::string hurt = folder_ / "hurt";
  int read = 0;
  for (size_t at = 0; at < bytes.size(); at += 1 + at / 50) {
    for (const bool cut : {true, false}) {
      std::string now = cut ? bytes.substr(0, at) : bytes;
      if (!cut) now[at] = static_cast<char>(now[at] ^ 0x55);
      std::ofstream(hurt, std::ios::binary | std::ios::trunc) << now;
      const Replayed replayed = ReplayFile(hurt);
      EXPECT_EQ(replayed.different, 0) << at;
      EXPECT_LE(replayed.commands, whole.commands);
      EXPECT_NE(replayed.ending.why, SegmentEnd::kStopped) << "byte " << at << (cut ? " cut" : " changed");
      read += replayed.commands > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(read, 0);
}

// A file is reported as complete only if it contains all that was written, and nothing else.
TEST_F(RecorderTest, ChangedFile_IsNotReportedComplete) {
  const std::string whole = RecordThreeFrames();
  const auto read = [&](const std::string& bytes) {
    const std::string path = folder_ / "other.rec";
    std::ofstream(path, std::ios::binary) << bytes;
    return ReplayFile(path);
  };
  const Replayed good = read(whole);
  ASSERT_TRUE(good.status.ok()) << good.status;
  ASSERT_GE(good.commands, 75);
  EXPECT_TRUE(absl::StrContains(read(whole + whole).status.message(), "there is data after its end"));
  EXPECT_TRUE(absl::StrContains(read(whole + "x").status.message(), "there is data after its end"));
  // The offsets of the frames: each frame begins with its length.
  std::vector<size_t> frames;
  const auto length = [&](size_t at) {
    size_t size = 0;
    for (size_t i = 4; i-- > 0;) size = size << 8 | static_cast<unsigned char>(whole[at + i]);
    return size;
  };
  for (size_t at = 8; at + 8 <= whole.size(); at += 8 + length(at)) frames.push_back(at);
  ASSERT_GT(frames.size(), 4U);
  int commands = 0;
  for (size_t i = 1; i < frames.size(); ++i) {
    const size_t at = frames[i];
    if (whole[at + 8] == 'C') {
      // Without one frame.
      const Replayed without = read(whole.substr(0, at) + whole.substr(at + 8 + length(at)));
      EXPECT_FALSE(without.status.ok() && without.different == 0) << "frame " << i;
      ++commands;
    }
    if (i + 1 == frames.size()) continue;
    for (int bit = 0; bit < 32; ++bit) {
      std::string other = whole;
      other[at + static_cast<size_t>(bit / 8)] =
          static_cast<char>(other[at + static_cast<size_t>(bit / 8)] ^ 1 << bit % 8);
      EXPECT_FALSE(read(other).status.ok()) << "frame " << i << ", bit " << bit << " of its length";
    }
  }
  EXPECT_GT(commands, 1);
}

TEST_F(RecorderTest, OtherVersionFile_IsRefusedWithVersion) {
  absl::StatusOr<SegmentWriter> writer = SegmentWriter::Create(options_.path);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Begin({.version = "0.9", .layout = RecordingLayout() + 1, .settings = ""}, "x").ok());
  const absl::Status status = SegmentReader::Open(options_.path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), absl::StrCat(options_.path,
                                           " was written by musterd 0.9, whose state this musterctl cannot read: use "
                                           "the musterctl of that version"));
  std::ofstream(options_.path, std::ios::trunc) << "MUSTERDB is something else";
  EXPECT_EQ(SegmentReader::Open(options_.path).status().message(),
            absl::StrCat(options_.path, " is not a recording of musterd"));
}

}  // namespace
}  // namespace muster
