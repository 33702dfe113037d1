#include "engine/container/container_launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <optional>
#include <set>
#include <system_error>

#include "engine/container/container_process.h"
#include "foundation/base/error_text.h"
#include "foundation/base/escaped_text.h"
#include "foundation/base/units.h"
#include "foundation/platform/clock.h"
#include "foundation/platform/thread.h"
#include "foundation/platform/topology.h"
#include "foundation/process/child_process.h"
#include "foundation/process/confinement.h"

namespace foliot {
namespace {

using std::filesystem::path;

// Of a file on disk.
constexpr uint64_t kFileBytesMax = uint64_t{1} << 30;
// An interpreter starts in a tenth of a second; a cold disk takes longer.
constexpr Duration kInterpreterTimeout = Duration::seconds(30);

// Shared libraries, the C library's settings, and what numerical libraries read to see which
// processor they are on. Those that are there.
constexpr const char* kSystem[] = {
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/os-release",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/vm/overcommit_memory",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
};
// Of itself, but what shows others: connections (net), mounts, and what its threads' folders have of both.
constexpr const char* kOwnProcess[] = {
    "/proc/self/auxv",         "/proc/self/cgroup", "/proc/self/cmdline",   "/proc/self/comm",
    "/proc/self/environ",      "/proc/self/io",     "/proc/self/limits",    "/proc/self/maps",
    "/proc/self/numa_maps",    "/proc/self/smaps",  "/proc/self/oom_score", "/proc/self/oom_score_adj",
    "/proc/self/smaps_rollup", "/proc/self/stat",   "/proc/self/statm",     "/proc/self/status",
};
constexpr const char* kOwnFolders[] = {"/proc/self/fd", "/proc/self/task"};
constexpr const char* kNetwork[] = {
    "/etc/hosts",    "/etc/host.conf", "/etc/resolv.conf",     "/etc/nsswitch.conf", "/etc/gai.conf",
    "/etc/services", "/etc/protocols", "/etc/ca-certificates", "/etc/ssl",           "/etc/pki",
};
constexpr const char* kDevices[] = {"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"};
// What every user of NVIDIA's driver opens, beside the device of its GPU, and reads.
constexpr const char* kGpuDevices[] = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
constexpr const char* kGpuFiles[] = {"/proc/devices", "/proc/driver/nvidia", "/proc/sys/vm/mmap_min_addr",
                                     "/sys/bus/pci/devices", "/sys/devices"};
// Its library names its threads there, and takes a refusal for the end ("OS call failed").
constexpr const char* kOwnThreads = "/proc/self/task";
constexpr const char* kLoaders[] = {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1",
                                    "/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1"};

// Prints the program to execute, then the folders that it reads modules and libraries from.
constexpr const char* kQuestion =
    "import os, sys\n"
    "print(sys.executable)\n"
    "print(*{os.path.realpath(p) for p in [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]\n"
    "        + [p for p in sys.path if p]}, sep='\\n')\n";

// Process 1 is the first of a PID namespace; and the machine's first process is no launcher.
bool has_namespaces() { return ::getpid() == 1; }

struct Interpreter {
  path program;
  std::vector<path> folders{};
};

std::vector<path> those_there(std::span<const char* const> paths) {
  std::vector<path> result;
  std::error_code ignored;
  for (const char* each : paths) {
    if (std::filesystem::exists(each, ignored)) result.emplace_back(each);
  }
  return result;
}

Result<path> find_program(const std::string& name) {
  if (name.starts_with('/')) return path(name);
  const char* variable = std::getenv("PATH");
  std::string_view folders = variable != nullptr ? variable : "";
  while (!folders.empty() && name.find('/') == std::string::npos) {
    const size_t end = std::min(folders.find(':'), folders.size());
    const path found = path(folders.substr(0, end)) / name;
    if (::access(found.c_str(), X_OK) == 0) return found;
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  return Status::not_found(
      fmt::format("the interpreter {} is not in PATH; set `python` to one that is, "
                  "or to an absolute path",
                  in_quotes(name)));
}

std::vector<std::string> own_environment() {
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) result.emplace_back(*variable);
  return result;
}

// Virtual environments and wrapper scripts resolve themselves.
Result<Interpreter> ask_interpreter(const std::string& name) {
  FOLIOT_ASSIGN_OR_RETURN(const path program, find_program(name));
  FOLIOT_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::start({.command = {program, "-I", "-c", kQuestion},
                                                                   .environment = own_environment()}));
  std::string said, complained;
  const TimePoint begin = monotonic_now();
  while (child.listen(Duration::milliseconds(100), said, complained)) {
    if (monotonic_now() - begin < kInterpreterTimeout) continue;
    return Status::resource_exhausted(fmt::format("the interpreter {} did not start within {}", program.string(),
                                                  format_duration(kInterpreterTimeout)));
  }
  Interpreter interpreter;
  std::error_code ignored;  // Of a folder on the way that this process may not read.
  for (size_t begin_of_line = 0, end = 0; (end = said.find('\n', begin_of_line)) != std::string::npos;
       begin_of_line = end + 1) {
    const path line = said.substr(begin_of_line, end - begin_of_line);
    if (interpreter.program.empty()) {
      interpreter.program = line;
    } else if (line.is_absolute() && line != "/" && std::filesystem::exists(line, ignored)) {
      interpreter.folders.push_back(line);
    }
  }
  if (child.succeeded() && interpreter.program.is_absolute()) return interpreter;
  return Status::invalid_argument(fmt::format("{} is no Python interpreter: {} {}", program.string(), child.ending(),
                                              escaped(complained.substr(0, 512))));
}

Result<std::vector<path>> gpu_devices(const std::vector<uint32_t>& gpus) {
  if (gpus.empty()) return std::vector<path>();
  std::vector<path> devices(std::begin(kGpuDevices), std::end(kGpuDevices));
  for (const uint32_t gpu : gpus) devices.emplace_back(fmt::format("/dev/nvidia{}", gpu));
  for (const path& device : devices) {
    std::error_code ignored;
    if (std::filesystem::exists(device, ignored)) continue;
    return Status::not_found(
        fmt::format("'gpus' in [container] needs {}, which does not exist: `foliot devices` lists "
                    "this machine's GPUs, `nvidia-modprobe -u -c N` makes the devices of GPU N",
                    device.string()));
  }
  return devices;
}

// What every container is confined to. The paths below /proc are there in any /proc that it will have.
ProgramConfinement basic_confinement(const ContainerLaunch& launch) {
  ProgramConfinement confinement{.readable = those_there(kSystem),
                                 .listed = those_there(kOwnFolders),
                                 .executable = those_there(kLoaders),
                                 .changeable = {launch.temporary},
                                 .devices = those_there(kDevices),
                                 .memory_bytes = launch.memory_bytes,
                                 .file_bytes = launch.disk_bytes > 0 ? launch.disk_bytes : kFileBytesMax,
                                 .disk_bytes = launch.disk_bytes,
                                 .network = launch.network,
                                 .namespaces = launch.namespaces && has_namespaces(),
                                 .own_id = true,
                                 .kernel = launch.safety.kernel};
  const std::vector<path> own = those_there(kOwnProcess);
  confinement.readable.insert(confinement.readable.end(), own.begin(), own.end());
  return confinement;
}

Result<ProgramConfinement> confinement_of(const ContainerLaunch& launch, const Interpreter& interpreter) {
  ProgramConfinement confinement = basic_confinement(launch);
  const auto add = [&](const std::vector<path>& more) {
    confinement.readable.insert(confinement.readable.end(), more.begin(), more.end());
  };
  add({launch.folder, launch.package});
  add(interpreter.folders);
  add(launch.readable);
  if (launch.network) add(those_there(kNetwork));
  FOLIOT_ASSIGN_OR_RETURN(confinement.controlled, gpu_devices(launch.gpus));
  if (!launch.gpus.empty()) {
    add(those_there(kGpuFiles));
    confinement.devices.emplace_back(kOwnThreads);
  }
  confinement.executable.push_back(interpreter.program);
  // Root's interpreter that others may not execute is executed by root.
  struct stat program {};
  confinement.own_id = ::stat(interpreter.program.c_str(), &program) == 0 && (program.st_mode & S_IXOTH) != 0;
  return confinement;
}

// Confines this process. What the kernel lacks.
Result<std::vector<std::string>> enter(const ContainerLaunch& launch, const ProgramConfinement& confinement) {
  FOLIOT_ASSIGN_OR_RETURN(std::vector<std::string> missing, confine_program(confinement));
  if (launch.namespaces && !confinement.namespaces) {
    missing.emplace_back(
        "no namespaces: its modes and times of files are fixed, and its disk is counted once a second");
  }
  if (launch.safety.strict && !missing.empty()) {
    return Status::invalid_argument(fmt::format(
        "the kernel cannot confine it fully, as --containers strict demands: {}", fmt::join(missing, "; ")));
  }
  return missing;
}

// The interpreter and its threads begin there. Numerical libraries set the affinity of their own
// threads, so code may move.
Status run_on(const CoreSet& cores) {
  if (cores.empty()) return Status();
  FOLIOT_ASSIGN_OR_RETURN(const Topology topology, read_topology());
  if (const Status status = topology.check(cores); !status.ok()) {
    return Status::invalid_argument(fmt::format("'cores' in [container]: {}", status.message()));
  }
  static_assert(kCoresMax <= CPU_SETSIZE);
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  for (const uint32_t core : cores) CPU_SET(core, &allowed);
  if (::sched_setaffinity(0, sizeof allowed, &allowed) == 0) return Status();
  return Status::internal(fmt::format("cannot run on the cores {}: {}", to_string(cores), error_text(errno)));
}

Status probe(const ContainerLaunch& launch) {
  FOLIOT_ASSIGN_OR_RETURN(const auto missing, enter(launch, basic_confinement(launch)));
  for (const std::string& what : missing) std::cout << what << '\n';
  std::cout.flush();
  return Status();
}

// Returns only if it fails.
Status become_container(const ContainerLaunch& launch) {
  FOLIOT_ASSIGN_OR_RETURN(const Interpreter interpreter, ask_interpreter(launch.python));
  FOLIOT_RETURN_IF_ERROR(run_on(launch.cores));
  use_default_slices();
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (::dup2(nothing.number(), STDIN_FILENO) < 0 || ::chdir(launch.folder.c_str()) != 0) {
    return Status::not_found(fmt::format("cannot enter {}: {}", launch.folder.string(), error_text(errno)));
  }
  FOLIOT_ASSIGN_OR_RETURN(const ProgramConfinement confinement, confinement_of(launch, interpreter));
  FOLIOT_ASSIGN_OR_RETURN(const auto unconfined, enter(launch, confinement));
  for (const std::string& what : unconfined) std::cerr << "the container is not fully confined: " << what << std::endl;
  std::array<const char*, 5> command{interpreter.program.c_str(), "-m", launch.module.c_str(), launch.folder.c_str(),
                                     nullptr};
  ::execve(command[0], const_cast<char**>(command.data()), environ);  // NOLINT: execve's type
  return Status::internal(fmt::format("cannot run {}: {}", interpreter.program.string(), error_text(errno)));
}

bool read_number(std::string_view text, auto& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

void append(std::string& text, std::string_view key, std::string_view value) {
  text.append(key).append(1, '=').append(value).append(1, '\0');
}

bool* flag_of(std::string_view key, ContainerLaunch& launch) {
  if (key == "network") return &launch.network;
  if (key == "namespaces") return &launch.namespaces;
  if (key == "strict") return &launch.safety.strict;
  return key == "probes" ? &launch.probes : nullptr;
}

}  // namespace

std::string encode_launch(const ContainerLaunch& launch) {
  std::string text;
  append(text, "python", launch.python);
  append(text, "module", launch.module);
  append(text, "folder", launch.folder.native());
  append(text, "package", launch.package.native());
  append(text, "temporary", launch.temporary.native());
  for (const path& each : launch.readable) append(text, "readable", each.native());
  append(text, "cores", to_string(launch.cores));
  append(text, "memory_bytes", fmt::to_string(launch.memory_bytes));
  append(text, "disk_bytes", fmt::to_string(launch.disk_bytes));
  append(text, "network", launch.network ? "1" : "0");
  append(text, "namespaces", launch.namespaces ? "1" : "0");
  append(text, "probes", launch.probes ? "1" : "0");
  append(text, "strict", launch.safety.strict ? "1" : "0");
  append(text, "kernel", to_string(launch.safety.kernel));
  for (const uint32_t gpu : launch.gpus) append(text, "gpu", fmt::to_string(gpu));
  return text;
}

Result<ContainerLaunch> decode_launch(std::string_view text) {
  ContainerLaunch launch;
  const Status wrong = Status::invalid_argument("the launcher of containers was not started by a server");
  if (text.empty() || text.back() != '\0') return wrong;
  while (!text.empty()) {
    const std::string_view field = text.substr(0, text.find('\0'));
    const size_t equals = field.find('=');
    if (equals == std::string_view::npos) return wrong;
    const std::string_view key = field.substr(0, equals), value = field.substr(equals + 1);
    if (key == "python") {
      launch.python = value;
    } else if (key == "module") {
      launch.module = value;
    } else if (key == "folder") {
      launch.folder = value;
    } else if (key == "package") {
      launch.package = value;
    } else if (key == "temporary") {
      launch.temporary = value;
    } else if (key == "readable") {
      launch.readable.emplace_back(value);
    } else if (key == "cores") {
      auto cores = parse_core_set(value);
      if (!cores.ok()) return wrong;
      launch.cores = *std::move(cores);
    } else if (key == "memory_bytes") {
      if (!read_number(value, launch.memory_bytes)) return wrong;
    } else if (key == "gpu") {
      if (!read_number(value, launch.gpus.emplace_back())) return wrong;
    } else if (key == "disk_bytes") {
      if (!read_number(value, launch.disk_bytes)) return wrong;
    } else if (key == "kernel") {
      auto kernel = parse_kernel_limits(value);
      if (!kernel.ok()) return wrong;
      launch.safety.kernel = *std::move(kernel);
    } else if (bool* const flag = flag_of(key, launch); flag != nullptr && (value == "0" || value == "1")) {
      *flag = value == "1";
    } else {
      return wrong;
    }
    text.remove_prefix(field.size() + 1);
  }
  return launch;
}

int launch_container() {
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  const Result<ContainerLaunch> launch = decode_launch(input);
  const Status status = !launch.ok() ? launch.status() : launch->probes ? probe(*launch) : become_container(*launch);
  if (status.ok()) return 0;
  const std::string packet = "E" + status.message().substr(0, kContainerErrorBytesMax);
  if (::send(kChildOutputFile, packet.data(), packet.size(), MSG_NOSIGNAL) < 0) {
    std::cerr << status.message() << std::endl;  // started by hand
  }
  return 1;
}

}  // namespace foliot
