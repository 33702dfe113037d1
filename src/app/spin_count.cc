#include "app/spin_count.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace foliot {
namespace {

// Some tens of microseconds: longer than from one operator to the next, shorter than from one
// EXEC to the next.
constexpr const char* kSpinCount = "5000";

}  // namespace

void limit_spinning(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command != "serve" && command != "worker" && command != "profile") return;
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error || ::setenv("GOMP_SPINCOUNT", kSpinCount, 1) != 0) return;
  ::execv(program.c_str(), argv);  // where it fails, this one goes on
}

}  // namespace foliot
