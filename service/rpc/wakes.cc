#include "service/rpc/wakes.h"

#include <algorithm>
#include <utility>

namespace muster {

Wakes::Wakes() : thread_([this] { Run(); }) {}

Wakes::~Wakes() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

Wakes::Reader Wakes::Join(Wake wake) {
  auto reader = std::make_shared<const Wake>(std::move(wake));
  MutexLock lock(&mutex_);
  readers_.push_back(reader);
  return reader;
}

void Wakes::Leave(const Reader& reader) {
  MutexLock lock(&mutex_);
  readers_.erase(std::remove(readers_.begin(), readers_.end(), reader), readers_.end());
}

bool Wakes::empty() {
  MutexLock lock(&mutex_);
  return readers_.empty();
}

void Wakes::News() {
  MutexLock lock(&mutex_);
  news_ = true;
  changed_.Signal();
}

void Wakes::Soon(const Reader& reader) {
  MutexLock lock(&mutex_);
  ready_.push_back(reader);
  changed_.Signal();
}

void Wakes::Run() {
  while (true) {
    std::vector<Reader> readers;
    {
      MutexLock lock(&mutex_);
      while (!news_ && ready_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (stopping_) return;
      readers.swap(ready_);
      if (std::exchange(news_, false)) readers = readers_;
    }
    for (const Reader& reader : readers) (*reader)();
  }
}

}  // namespace muster
