#include "app/commands/simulate_links.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <map>
#include <string>

#include "app/commands/progress_bar.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

// Written before each run, so that a handler of SIGABRT has only to print it.
char seed_line[64];

void print_seed(int /*signal*/) {
  const ssize_t written = write(STDERR_FILENO, seed_line, std::char_traits<char>::length(seed_line));
  static_cast<void>(written);
}

class SeedOnAbort {
 public:
  SeedOnAbort() : before_(std::signal(SIGABRT, print_seed)) {}
  ~SeedOnAbort() { std::signal(SIGABRT, before_); }
  SeedOnAbort(const SeedOnAbort&) = delete;
  SeedOnAbort& operator=(const SeedOnAbort&) = delete;

 private:
  void (*const before_)(int);
};

struct Sum {
  uint64_t runs = 0;
  ClusterTally requests;
  std::map<ClusterFaultKind, uint64_t> faults;
  uint64_t links = 0;
  uint64_t events = 0;
  uint64_t hashes = 0;  // of the runs, in order
  Duration settled_max;
  Duration simulated;

  void add(const ClusterSimulationReport& report) {
    ++runs;
    requests.submitted += report.requests.submitted;
    requests.served += report.requests.served;
    requests.turned_away += report.requests.turned_away;
    requests.lost += report.requests.lost;
    for (size_t i = 0; i < requests.refused.size(); ++i) requests.refused[i] += report.requests.refused[i];
    for (const auto& [kind, count] : report.faults) faults[kind] += count;
    links += report.links;
    events += report.events;
    hashes = hashes * 31 + report.event_hash;
    settled_max = std::max(settled_max, report.settled);
    simulated += report.simulated;
  }
};

std::string text(const std::string& policy, const Sum& sum, Duration real) {
  const ClusterTally& requests = sum.requests;
  const double all = std::max<double>(1, static_cast<double>(requests.submitted));
  const double seconds = std::max(1e-9, real.to_seconds());
  std::string text = fmt::format(
      "{}: {} runs, no promise broken; {} requests, {} events, {} links; {:.0f} s simulated in {:.1f} s: {:.0f} "
      "requests/s\n  served {:.2f} %, turned away by front ends {:.2f} %, lost with them {:.2f} %",
      policy, sum.runs, requests.submitted, sum.events, sum.links, sum.simulated.to_seconds(), seconds,
      static_cast<double>(requests.submitted) / seconds, 100 * static_cast<double>(requests.served) / all,
      100 * static_cast<double>(requests.turned_away) / all, 100 * static_cast<double>(requests.lost) / all);
  for (size_t i = 1; i < requests.refused.size(); ++i) {
    if (requests.refused[i] == 0) continue;
    text += fmt::format(", {} {:.2f} %", to_string(static_cast<Refusal>(i)),
                        100 * static_cast<double>(requests.refused[i]) / all);
  }
  text += "\n  faults:";
  for (const auto& [kind, count] : sum.faults) text += fmt::format(" {} {}", to_string(kind), count);
  return text + fmt::format("; all was served again after {:.1f} s at most; hash {:016x}\n",
                            sum.settled_max.to_seconds(), sum.hashes);
}

}  // namespace

Status simulate_links(const SimulationFile& file, uint64_t seeds) {
  const SeedOnAbort on_abort;
  ProgressBar bar("simulating");
  for (const std::string& policy : file.policies) {
    Sum sum;
    const TimePoint start = monotonic_now();
    for (uint64_t i = 0; i < seeds; ++i) {
      const ClusterSimulationOptions options = links_options(file, policy, file.options.seed + i);
      std::snprintf(seed_line, sizeof(seed_line), "foliot simulate: in the run with --seed %lu\n", options.seed);
      const auto report = simulate_cluster(options, file.workload, file.profiles);
      if (!report.ok()) bar.clear();
      FOLIOT_RETURN_IF_ERROR(report.status());
      sum.add(*report);
      bar.show(policy, fmt::format("seed {}", options.seed), static_cast<double>(i + 1) / static_cast<double>(seeds));
    }
    bar.clear();
    fmt::print("{}", text(policy, sum, monotonic_now() - start));
    std::fflush(stdout);
  }
  return Status();
}

}  // namespace foliot
