#include "app/startup_environment.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace foliot {
namespace {

// The heap is marked as memory that may have huge pages (madvise), which is what most systems allow.
constexpr const char* kHugePages = "glibc.malloc.hugetlb=1";

void begin_anew_with(const char* variable, const char* value, char** argv) {
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error || ::setenv(variable, value, 1) != 0) return;
  ::execv(program.c_str(), argv);  // where it fails, this one goes on
}

}  // namespace

void set_startup_environment(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  const auto is_set = [](const char* variable) { return std::getenv(variable) != nullptr; };
  if (command == "controller" && !is_set("GLIBC_TUNABLES")) begin_anew_with("GLIBC_TUNABLES", kHugePages, argv);
}

}  // namespace foliot
