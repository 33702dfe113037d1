// runtime_runner PACKAGE THREADS: executes a compiled program and does nothing
// else, told what by lines of its standard input, so that bench/runtime.py can
// take turns with another runtime. Every answer is one line; durations are in
// nanoseconds.
//
//   (at the start)               ready OPEN ALLOCATE PREPARE LOAD RUN PREPARE_MORE: makes
//                                the smallest batch size ready, loads, runs it, and only
//                                then makes the others ready
//   input PLAN INPUT FILE        ok: reads the raw elements of an input
//   run PLAN COUNT               the duration of each of COUNT runs
//   loop KIND ITERATIONS COUNT   the same of a loop on each of the threads: of "arithmetic",
//                                or of "reading" memory as large as the program's weights
//   turns PLAN KIND ITERATIONS COUNT
//                                COUNT times: the duration of a run, of such a loop right
//                                after it, then page faults and preemptions of the run
//   output PLAN OUTPUT FILE      ok: writes the raw elements of an output
#include <sys/resource.h>
#include <time.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "foundation/base/heap.h"
#include "engine/device/cpu/cpu_device.h"
#include "engine/device/cpu/host_memory.h"
#include "engine/program/package.h"

namespace foliot {
namespace {

int64_t now_nanoseconds() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

[[noreturn]] void fail(const std::string& message) {
  std::cerr << "runtime_runner: " << message << '\n';
  std::exit(1);
}

void require(const Status& status) {
  if (!status.ok()) fail(status.message());
}

class Runner {
 public:
  Runner(const std::string& package, uint32_t threads) {
    const int64_t start = now_nanoseconds();
    auto opened = open_package(package, WeightsTier::kMemory);
    require(opened.status());
    package_ = *opened;
    const int64_t open = now_nanoseconds();
    device_ = make_cpu_device({.threads = threads});
    const Program& program = *package_.program;
    const uint32_t pages = program.pages(program.page_bytes);
    output_offset_ = (program.input_bytes() + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
    require(device_->allocate({.page_bytes = program.page_bytes,
                               .page_count = pages,
                               .io_cache_bytes = output_offset_ + program.output_bytes(),
                               .workspace_bytes = program.workspace_bytes()}));
    const int64_t allocate = now_nanoseconds();
    auto executable = device_->preload(program.plans, package_.weights);
    require(executable.status());
    executable_ = std::move(*executable);
    prepare(0);
    const int64_t prepared = now_nanoseconds();
    std::vector<PageIndex> indices(pages);
    std::iota(indices.begin(), indices.end(), PageIndex{0});
    require(executable_->load(indices));
    const int64_t load = now_nanoseconds();
    const int64_t first_run = run_once(0);
    const int64_t answered = now_nanoseconds();
    for (size_t i = 1; i < program.batch_sizes.size(); ++i) prepare(i);
    std::cout << "ready " << open - start << ' ' << allocate - open << ' ' << prepared - allocate << ' '
              << load - prepared << ' ' << first_run << ' ' << now_nanoseconds() - answered << std::endl;
  }

  void obey(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    std::string kind;
    uint64_t iterations = 0;
    size_t number = 0;
    if (command == "loop" && words >> kind >> iterations >> number) return loop(kind, iterations, number);
    uint32_t plan = 0;
    if (command == "turns" && words >> plan >> kind >> iterations >> number)
      return turns(plan, kind, iterations, number);
    std::string rest;
    words >> plan >> number >> rest;
    if (words.bad() || plan >= package_.program->plans.size()) fail("cannot obey '" + line + "'");
    if (command == "run") {
      run(plan, number);
    } else if (command == "input") {
      read_input(package_.program->plans[plan], number, rest);
    } else if (command == "output") {
      write_output(package_.program->plans[plan], number, rest);
    } else {
      fail("cannot obey '" + line + "'");
    }
  }

 private:
  // The batch size at this position, in every bucket.
  void prepare(size_t batch_index) {
    const Program& program = *package_.program;
    for (size_t plan = batch_index; plan < program.plans.size(); plan += program.batch_sizes.size())
      require(executable_->prepare(static_cast<uint32_t>(plan), 1));
  }

  void read_input(const Plan& plan, size_t number, const std::string& path) {
    const Tensor& tensor = plan.tensors[plan.inputs.at(number)];
    std::vector<char> bytes(tensor.bytes);
    std::ifstream file(path, std::ios::binary);
    if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())) || file.peek() != EOF) {
      fail(path + " does not hold the input");
    }
    device_->copy_to_io(tensor.offset, std::as_bytes(std::span(bytes)));
    std::cout << "ok" << std::endl;
  }

  void write_output(const Plan& plan, size_t number, const std::string& path) {
    const Tensor& tensor = plan.tensors[plan.outputs.at(number)];
    std::vector<char> bytes(tensor.bytes);
    device_->copy_from_io(output_offset_ + tensor.offset, std::as_writable_bytes(std::span(bytes)));
    std::ofstream file(path, std::ios::binary);
    if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush()) fail("cannot write " + path);
    std::cout << "ok" << std::endl;
  }

  int64_t run_once(uint32_t plan) {
    const int64_t start = now_nanoseconds();
    require(executable_->run({.plan = plan, .output_offset = output_offset_}));
    return now_nanoseconds() - start;
  }

  // Touches no memory and makes no call: what varies is the machine's doing.
  static void compute(uint64_t iterations) {
    uint64_t state = 1;
    for (uint64_t i = 0; i < iterations; ++i) state = state * 6364136223846793005u + 1442695040888963407u;
    asm volatile("" : : "r"(state));
  }

  // From the beginning, and from there again at the end.
  void read_memory(uint64_t iterations) const {
    constexpr uint64_t kStep = 32;  // words
    uint64_t sum = 0;
    const uint64_t* const words = reinterpret_cast<const uint64_t*>(memory_.data());
    for (uint64_t i = 0, first = 0; i < iterations; ++i, first += kStep) {
      if (first + kStep > memory_.bytes() / sizeof(uint64_t)) first = 0;
      for (uint64_t word = first; word < first + kStep; ++word) sum += words[word];
    }
    asm volatile("" : : "r"(sum));
  }

  // Until the last thread is done, as a run.
  int64_t loop_once(bool reading, uint64_t iterations) const {
    const int64_t start = now_nanoseconds();
#pragma omp parallel
    reading ? read_memory(iterations) : compute(iterations);
    return now_nanoseconds() - start;
  }

  // Whether it is that of reading, which memory is then there for.
  bool is_reading(const std::string& kind) {
    if (kind != "reading" && kind != "arithmetic") fail("there is no loop of " + kind);
    if (kind == "reading" && memory_.bytes() == 0) {
      const Program& program = *package_.program;
      bool locked = false;
      auto memory = take_memory(uint64_t{program.pages(program.page_bytes)} * program.page_bytes, "loop of reading",
                                false, locked);
      require(memory.status());
      memory_ = std::move(*memory);
    }
    return kind == "reading";
  }

  void run(uint32_t plan, size_t count) {
    std::vector<int64_t> durations(count);
    for (int64_t& duration : durations) duration = run_once(plan);
    print(durations);
  }

  void loop(const std::string& kind, uint64_t iterations, size_t count) {
    const bool reading = is_reading(kind);
    std::vector<int64_t> durations(count);
    for (int64_t& duration : durations) duration = loop_once(reading, iterations);
    print(durations);
  }

  // Alternating, so that whatever the machine does meets both.
  void turns(uint32_t plan, const std::string& kind, uint64_t iterations, size_t count) {
    if (plan >= package_.program->plans.size()) fail("there is no such plan");
    const bool reading = is_reading(kind);
    std::vector<int64_t> figures(4 * count);
    for (size_t i = 0; i < figures.size(); i += 4) {
      rusage before{}, after{};
      ::getrusage(RUSAGE_THREAD, &before);
      figures[i] = run_once(plan);
      ::getrusage(RUSAGE_THREAD, &after);
      figures[i + 1] = loop_once(reading, iterations);
      figures[i + 2] = after.ru_minflt - before.ru_minflt;
      figures[i + 3] = after.ru_nivcsw - before.ru_nivcsw;
    }
    print(figures);
  }

  static void print(const std::vector<int64_t>& durations) {
    for (int64_t duration : durations) std::cout << duration << ' ';
    std::cout << std::endl;
  }

  Package package_;
  std::unique_ptr<CpuDevice> device_;
  std::unique_ptr<Executable> executable_;
  uint64_t output_offset_ = 0;
  Mapping memory_;  // what the loop of reading reads
};

}  // namespace
}  // namespace foliot

int main(int argc, char** argv) {
  foliot::keep_heap_memory();
  if (argc != 3) foliot::fail("write runtime_runner PACKAGE THREADS");
  foliot::Runner runner(argv[1], static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10)));
  for (std::string line; std::getline(std::cin, line);) runner.obey(line);
}
