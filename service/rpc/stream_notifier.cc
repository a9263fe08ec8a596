#include "service/rpc/stream_notifier.h"

#include <algorithm>
#include <utility>

namespace muster {

StreamNotifier::StreamNotifier() : thread_([this] { Run(); }) {}

StreamNotifier::~StreamNotifier() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

StreamNotifier::Reader StreamNotifier::Subscribe(Wake wake) {
  auto reader = std::make_shared<const Wake>(std::move(wake));
  MutexLock lock(&mutex_);
  readers_.push_back(reader);
  return reader;
}

void StreamNotifier::Unsubscribe(const Reader& reader) {
  MutexLock lock(&mutex_);
  readers_.erase(std::remove(readers_.begin(), readers_.end(), reader), readers_.end());
}

bool StreamNotifier::empty() {
  MutexLock lock(&mutex_);
  return readers_.empty();
}

void StreamNotifier::NotifyAll() {
  MutexLock lock(&mutex_);
  notify_all_ = true;
  changed_.Signal();
}

void StreamNotifier::NotifyOne(const Reader& reader) {
  MutexLock lock(&mutex_);
  ready_.push_back(reader);
  changed_.Signal();
}

void StreamNotifier::Run() {
  while (true) {
    std::vector<Reader> readers;
    {
      MutexLock lock(&mutex_);
      while (!notify_all_ && ready_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (stopping_) return;
      readers.swap(ready_);
      if (std::exchange(notify_all_, false)) readers = readers_;
    }
    for (const Reader& reader : readers) (*reader)();
  }
}

}  // namespace muster
