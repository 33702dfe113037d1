#include "load/workload/azure_like_trace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// Hourly rates: natural logarithm of mean kMu and deviation kSigma, clipped at
// kClip deviations: eight decades.
constexpr double kMu = 0.51;
constexpr double kSigma = 4.08;
constexpr double kClip = 2.3;

struct TriggerShare {
  FunctionTrigger trigger;
  double functions;
  double invocations;
};
constexpr std::array<TriggerShare, 6> kTriggers{{
    {FunctionTrigger::kHttp, 0.55, 0.36},
    {FunctionTrigger::kQueue, 0.15, 0.34},
    {FunctionTrigger::kEvent, 0.02, 0.25},
    {FunctionTrigger::kTimer, 0.16, 0.02},
    {FunctionTrigger::kOrchestration, 0.07, 0.02},
    {FunctionTrigger::kOther, 0.05, 0.01},
}};

constexpr double kMinute = 60;
constexpr std::array<double, 4> kPeriods{1 * kMinute, 5 * kMinute, 15 * kMinute, 60 * kMinute};
constexpr double kTimerJitter = 1;

constexpr double kDay = 24 * 3600;
constexpr double kNever = 1e9;  // later than every run

// The rate of people at a time of the week, against its mean: most in the
// afternoon, less at the weekend.
double wave(double seconds_of_week) {
  constexpr double kPeak = 15 * 3600;
  constexpr double kWorkday = 1.1;
  constexpr double kWeekend = 0.75;
  const double day = std::fmod(seconds_of_week, 7 * kDay) / kDay;
  return (1 + 0.4 * std::cos(2 * std::numbers::pi * (seconds_of_week - kPeak) / kDay)) *
         (day < 5 ? kWorkday : kWeekend);
}
constexpr double kWaveMax = 1.4 * 1.1;

AzureLikeTrace::Function draw_function(FunctionTrigger trigger, Random& random) {
  AzureLikeTrace::Function function{.trigger = trigger};
  const double log_rate = kMu + kSigma * std::clamp(random.normal(), -kClip, kClip);
  function.rate = std::exp(log_rate) / 3600;
  if (trigger == FunctionTrigger::kQueue || trigger == FunctionTrigger::kEvent) {
    function.coefficient_of_variation = 2 + 6 * random.uniform();
  }
  if (trigger == FunctionTrigger::kTimer) {
    const double period = kPeriods[random.below(kPeriods.size())];
    function.period = Duration::from_seconds(period);
    function.rate = 1 / period;
  }
  return function;
}

}  // namespace

AzureLikeTrace::AzureLikeTrace(const AzureLikeOptions& options) : options_(options) {
  FOLIOT_CHECK(options.functions > 0 && options.rate > 0);
  Random random(options.seed);
  // What each trigger's functions come to as drawn; they are scaled to its share.
  std::array<double, kTriggers.size()> drawn{};
  std::vector<size_t> trigger_of;
  for (uint32_t i = 0; i < options.functions; ++i) {
    const double point = random.uniform();
    size_t which = 0;
    for (double sum = kTriggers[0].functions; sum <= point && which + 1 < kTriggers.size();) {
      sum += kTriggers[++which].functions;
    }
    functions_.push_back(draw_function(kTriggers[which].trigger, random));
    trigger_of.push_back(which);
    drawn[which] += functions_.back().rate;
  }
  double present = 0;  // of few functions, some triggers may have none
  for (size_t i = 0; i < kTriggers.size(); ++i) present += drawn[i] > 0 ? kTriggers[i].invocations : 0;
  for (uint32_t i = 0; i < options.functions; ++i) {
    const double share = kTriggers[trigger_of[i]].invocations / present;
    functions_[i].rate *= options.rate * share / drawn[trigger_of[i]];
  }
}

// All functions in one heap, by when each is due next.
class AzureLikeTrace::Replay : public TraceReplay {
 public:
  Replay(const AzureLikeTrace& trace, Random random)
      : trace_(trace), week_(trace.options_.from.to_seconds()), random_(random) {
    heap_.reserve(trace.functions());
    for (uint32_t i = 0; i < trace.functions(); ++i) {
      const Function& function = trace.functions_[i];
      heap_.push_back({first(function), i, function.trigger == FunctionTrigger::kTimer});
    }
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  std::optional<Invocation> next() override {
    while (true) {
      const Due now = heap_.front();
      if (now.seconds >= kNever) return std::nullopt;
      const Function& function = trace_.functions_[now.function];
      if (function.trigger != FunctionTrigger::kTimer) {
        put_off_first(std::min(now.seconds + gap(function, now.seconds), kNever));
      } else if (now.fires) {
        // It becomes as many invocations as a firing brings, each a little late.
        fire(function, now);
        continue;
      } else {
        std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
        heap_.pop_back();
      }
      return invocation(now);
    }
  }

 private:
  struct Due {
    double seconds;
    uint32_t function;
    bool fires = false;  // a timer, rather than one of its invocations
    bool operator>(const Due& other) const {
      return std::pair(seconds, function) > std::pair(other.seconds, other.function);
    }
  };

  // The first is due later. It goes down only as far as it has to: what is invoked often
  // stays near the front.
  void put_off_first(double seconds) {
    Due moved = heap_.front();
    moved.seconds = seconds;
    size_t at = 0;
    for (size_t child = 1; child < heap_.size(); child = 2 * at + 1) {
      if (child + 1 < heap_.size() && heap_[child] > heap_[child + 1]) ++child;
      if (!(moved > heap_[child])) break;
      heap_[at] = heap_[child];
      at = child;
    }
    heap_[at] = moved;
  }

  static Invocation invocation(const Due& due) { return {Duration::from_seconds(due.seconds), due.function}; }

  // As if the process had gone on for ever: no burst at the beginning.
  double first(const Function& function) {
    if (function.trigger == FunctionTrigger::kTimer) {
      const int64_t over = trace_.options_.from.nanoseconds() % function.period.nanoseconds();
      return over == 0 ? 0 : (function.period - Duration::nanoseconds(over)).to_seconds();
    }
    const double variation = function.coefficient_of_variation;
    if (variation == 1) return std::min(gap(function, 0), kNever);
    // The gap around any one instant is longer than most, and the instant lies
    // anywhere in it.
    const double mean = (1 + variation * variation) / function.rate;
    const double around = mean * random_.gamma_with_variation(1 / std::sqrt(1 + 1 / (variation * variation)));
    return std::min(random_.uniform() * around, kNever);
  }

  double gap(const Function& function, double now) {
    if (function.trigger == FunctionTrigger::kHttp) {
      double at = now;
      do {
        at += random_.exponential() / (function.rate * kWaveMax);
      } while (at < kNever && random_.uniform() * kWaveMax > wave(week_ + at));
      return at - now;
    }
    if (function.coefficient_of_variation == 1) return random_.exponential() / function.rate;
    return random_.gamma_with_variation(function.coefficient_of_variation) / function.rate;
  }

  void fire(const Function& function, const Due& timer) {
    const double period = function.period.to_seconds();
    put_off_first(timer.seconds + period);
    const double mean = function.rate * period;
    const double whole = std::floor(mean);
    const auto count = static_cast<uint64_t>(whole) + (random_.uniform() < mean - whole ? 1 : 0);
    for (uint64_t i = 0; i < count; ++i) {
      heap_.push_back({timer.seconds + kTimerJitter * random_.uniform(), timer.function, false});
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
  }

  const AzureLikeTrace& trace_;
  const double week_;
  Random random_;
  std::vector<Due> heap_;
};

std::unique_ptr<TraceReplay> AzureLikeTrace::replay(Random random) const {
  return std::make_unique<Replay>(*this, random);
}

}  // namespace foliot
