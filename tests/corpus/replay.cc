// The main program of a fuzzer that replays its corpus: every file of the folder given
// goes through LLVMFuzzerTestOneInput once, in the order of names, with any compiler
// and without libFuzzer. An input that breaks a promise ends the process, and its name
// is the last one printed. So does one that takes more than SECONDS (0.1) of processor time, or
// leaves more than 16 MiB behind; not under sanitizers, which take both.
//
// What goes over a limit is replayed twice more and counts by the least: a first input
// brings up what a fuzzer keeps, a server for one, and the kernel may count other work.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FOLIOT_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(FOLIOT_SANITIZED)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr double kSecondsMax = 0.1;    // of a processor, for one input
constexpr long kBytesMax = 16L << 20;  // that are resident after it and were not before
constexpr int kTries = 3;

// Of all threads.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

long resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  long size = 0;
  long resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// False: it takes too much, each time.
bool replay(const std::vector<char>& bytes, double seconds_max) {
  double seconds = 0;
  long grown = 0;
  for (int i = 0; i < kTries; ++i) {
    const double begin = processor_seconds();
    const long before = resident_bytes();
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    seconds = processor_seconds() - begin;
    grown = resident_bytes() - before;
    if (kSanitized || (seconds <= seconds_max && grown <= kBytesMax)) return true;
  }
  std::fprintf(stderr, "it takes %.3f s of a processor, of %.3f at most, and leaves %ld bytes, of %ld\n", seconds,
               seconds_max, grown, kBytesMax);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3 || !std::filesystem::is_directory(argv[1])) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER [SECONDS]\n", argv[0]);
    return 2;
  }
  std::vector<std::filesystem::path> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    if (entry.is_regular_file()) inputs.push_back(entry.path());
  }
  std::sort(inputs.begin(), inputs.end());
  for (const std::filesystem::path& input : inputs) {
    std::printf("%s\n", input.c_str());
    std::fflush(stdout);
    std::ifstream file(input, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    if (!replay(bytes, argc == 3 ? std::atof(argv[2]) : kSecondsMax)) return 1;
  }
  std::printf("%zu inputs replayed\n", inputs.size());
  return inputs.empty() ? 1 : 0;
}
