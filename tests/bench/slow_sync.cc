// A slow disk: preloaded into a program, it makes every sync of a file take MUSTER_SYNC_MS longer. The program itself
// is unchanged.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

namespace {

int Slowly(const char* name, int fd) {
  using Sync = int (*)(int);
  static const char* const text = std::getenv("MUSTER_SYNC_MS");
  if (text != nullptr) usleep(static_cast<useconds_t>(std::atoi(text)) * 1000);
  return reinterpret_cast<Sync>(dlsym(RTLD_NEXT, name))(fd);
}

}  // namespace

extern "C" int fsync(int fd) { return Slowly("fsync", fd); }
extern "C" int fdatasync(int fd) { return Slowly("fdatasync", fd); }
