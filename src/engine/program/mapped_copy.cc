#include "engine/program/mapped_copy.h"

#include <setjmp.h>
#include <signal.h>

#include <cstring>

#include "foundation/base/check.h"

namespace foliot {
namespace {

struct Copy {
  std::span<const std::byte> from;
  sigjmp_buf escape;
};

// What this thread copies at present: a handler is given nothing but the signal.
thread_local Copy* copy_under_way = nullptr;

struct sigaction& previous_action() {
  static struct sigaction action {};
  return action;
}

void on_bus_error(int signal, siginfo_t* information, void* context) {
  if (Copy* copy = copy_under_way) {
    const auto* address = static_cast<const std::byte*>(information->si_addr);
    if (address >= copy->from.data() && address < copy->from.data() + copy->from.size()) ::siglongjmp(copy->escape, 1);
  }
  const struct sigaction& previous = previous_action();
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, information, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    ::signal(SIGBUS, SIG_DFL);  // whatever raised it is tried again, and ends the process
  }
}

}  // namespace

void handle_bus_errors() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  // Not blocked while handled: the handler is left by a jump, which unblocks nothing.
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  struct sigaction previous {};
  FOLIOT_CHECK(::sigaction(SIGBUS, nullptr, &previous) == 0);
  if (previous.sa_sigaction == on_bus_error) return;
  previous_action() = previous;
  FOLIOT_CHECK(::sigaction(SIGBUS, &action, nullptr) == 0);
}

bool copy_from_mapped_file(std::span<std::byte> to, const std::byte* from) {
  Copy copy{.from = {from, to.size()}, .escape = {}};
  copy_under_way = &copy;
  if (sigsetjmp(copy.escape, 0) != 0) {
    copy_under_way = nullptr;
    return false;
  }
  std::memcpy(to.data(), from, to.size());
  copy_under_way = nullptr;
  return true;
}

}  // namespace foliot
