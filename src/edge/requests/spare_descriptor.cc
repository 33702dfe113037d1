#include "edge/requests/spare_descriptor.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace foliot {

bool SpareDescriptor::is_missing(int error) { return error == EMFILE || error == ENFILE; }

void SpareDescriptor::lend(const std::function<void()>& use) {
  give();
  use();
  take_back();
}

void SpareDescriptor::refuse_waiting(int listener, const std::function<void(int connection)>& refuse) {
  constexpr int kAtOnceMax = 64;  // others are served in between
  lend([&] {
    for (int i = 0; i < kAtOnceMax; ++i) {
      const int connection = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (connection < 0) return;
      refuse(connection);
      ::close(connection);
    }
  });
}

void SpareDescriptor::give() {
  if (spare_ >= 0) ::close(std::exchange(spare_, -1));
}

void SpareDescriptor::take_back() { spare_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace foliot
