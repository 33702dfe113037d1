#include "load/workload/arrivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace foliot {
namespace {

struct KindName {
  ArrivalKind kind;
  std::string_view name;
};
constexpr std::array<KindName, 7> kKindNames{{
    {ArrivalKind::kPoisson, "poisson"},
    {ArrivalKind::kGamma, "gamma"},
    {ArrivalKind::kUniform, "uniform"},
    {ArrivalKind::kOnOff, "on-off"},
    {ArrivalKind::kSpike, "spike"},
    {ArrivalKind::kRamp, "ramp"},
    {ArrivalKind::kReplay, "replay"},
}};

// Gaps that are independent and alike; a coefficient of variation of 1 is Poisson.
class Renewal : public ArrivalProcess {
 public:
  Renewal(double rate, double coefficient_of_variation)
      : mean_gap_seconds_(1 / rate), coefficient_of_variation_(coefficient_of_variation) {}
  std::optional<Duration> next_gap(Random& random) override {
    return Duration::from_seconds(mean_gap_seconds_ * draw(random));
  }

 private:
  double draw(Random& random) const {
    if (coefficient_of_variation_ == 0) return 1;
    if (coefficient_of_variation_ == 1) return random.exponential();
    return random.gamma_with_variation(coefficient_of_variation_);
  }
  const double mean_gap_seconds_;
  const double coefficient_of_variation_;
};

class OnOff : public ArrivalProcess {
 public:
  OnOff(double rate, Duration mean_on, Duration mean_off)
      : mean_on_(mean_on.to_seconds()),
        mean_off_(mean_off.to_seconds()),
        mean_gap_seconds_(mean_on_ / (rate * (mean_on_ + mean_off_))) {}

  std::optional<Duration> next_gap(Random& random) override {
    double gap = started_ ? 0 : start(random);
    while (true) {
      const double step = mean_gap_seconds_ * random.exponential();
      if (step < on_left_) {
        on_left_ -= step;
        return Duration::from_seconds(gap + step);
      }
      // The burst ends first. Exponential gaps have no memory, so the next burst
      // draws afresh.
      gap += on_left_ + mean_off_ * random.exponential();
      on_left_ = mean_on_ * random.exponential();
    }
  }

 private:
  // Begins in either phase with its share of the time: stationary from the start.
  double start(Random& random) {
    started_ = true;
    const bool off = random.uniform() * (mean_on_ + mean_off_) < mean_off_;
    const double silence = off ? mean_off_ * random.exponential() : 0;
    on_left_ = mean_on_ * random.exponential();
    return silence;
  }

  const double mean_on_;
  const double mean_off_;
  const double mean_gap_seconds_;
  bool started_ = false;
  double on_left_ = 0;
};

// Poisson with a rate that is linear between given points and stays as it is
// after the last. The next arrival is where the area under the rate has grown by
// an exponential draw, which is exact.
class VaryingPoisson : public ArrivalProcess {
 public:
  struct Point {
    double seconds;
    double rate;
  };
  explicit VaryingPoisson(std::vector<Point> points) : points_(std::move(points)) {}

  std::optional<Duration> next_gap(Random& random) override {
    const double before = now_;
    double area = random.exponential();
    while (segment_ + 1 < points_.size()) {
      const Point& end = points_[segment_ + 1];
      const double length = end.seconds - now_;
      const double left = (rate_now() + end.rate) / 2 * length;
      if (area < left) return advance(before, time_to_fill(area, slope()));
      area -= left;
      now_ = end.seconds;
      ++segment_;
    }
    if (points_.back().rate == 0) return std::nullopt;
    return advance(before, area / points_.back().rate);
  }

 private:
  std::optional<Duration> advance(double before, double step) {
    now_ += step;
    return Duration::from_seconds(now_ - before);
  }
  double slope() const {
    const Point& start = points_[segment_];
    const Point& end = points_[segment_ + 1];
    return end.seconds > start.seconds ? (end.rate - start.rate) / (end.seconds - start.seconds) : 0;
  }
  double rate_now() const { return points_[segment_].rate + slope() * (now_ - points_[segment_].seconds); }
  // Solves rate * t + slope * t^2 / 2 = area, in the form that loses no digits.
  double time_to_fill(double area, double slope) const {
    const double rate = rate_now();
    return 2 * area / (rate + std::sqrt(std::max(0.0, rate * rate + 2 * slope * area)));
  }

  const std::vector<Point> points_;  // at least one; the first at 0
  size_t segment_ = 0;
  double now_ = 0;
};

class Replay : public ArrivalProcess {
 public:
  explicit Replay(std::vector<Duration> instants) : instants_(std::move(instants)) {}
  std::optional<Duration> next_gap(Random&) override {
    if (next_ == instants_.size()) return std::nullopt;
    const Duration instant = instants_[next_++];
    return instant - std::exchange(before_, instant);
  }

 private:
  const std::vector<Duration> instants_;
  size_t next_ = 0;
  Duration before_;
};

std::vector<VaryingPoisson::Point> spike(const ArrivalOptions& options) {
  const double start = options.spike_start.to_seconds();
  const double rise = options.spike_rise.to_seconds();
  const double length = options.spike_length.to_seconds();
  const double top = options.rate * options.spike_factor;
  return {{0, options.rate},
          {start, options.rate},
          {start + rise, top},
          {start + rise + length, top},
          {start + rise + length + rise, options.rate}};
}

Status check(const ArrivalOptions& options) {
  const auto needs = [&](bool holds, std::string_view what) {
    return holds ? Status() : Status::invalid_argument(fmt::format("{} arrivals: {}", to_string(options.kind), what));
  };
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  const auto not_negative = [](double value) { return std::isfinite(value) && value >= 0; };
  switch (options.kind) {
    case ArrivalKind::kReplay:
      return needs(std::is_sorted(options.instants.begin(), options.instants.end()) &&
                       (options.instants.empty() || options.instants.front() >= Duration()),
                   "instants must ascend from 0");
    case ArrivalKind::kRamp:
      FOLIOT_RETURN_IF_ERROR(needs(options.ramp_length > Duration(), "the ramp's length must be above 0"));
      return needs(
          not_negative(options.rate) && not_negative(options.ramp_rate) && options.rate + options.ramp_rate > 0,
          "the rates at start and end must not be negative, nor both 0");
    case ArrivalKind::kSpike:
      FOLIOT_RETURN_IF_ERROR(needs(not_negative(options.spike_factor), "the spike's factor must not be negative"));
      FOLIOT_RETURN_IF_ERROR(needs(
          options.spike_start >= Duration() && options.spike_rise >= Duration() && options.spike_length >= Duration(),
          "the spike's start, rise and length must not be negative"));
      break;
    case ArrivalKind::kGamma:
      FOLIOT_RETURN_IF_ERROR(
          needs(positive(options.coefficient_of_variation), "the coefficient of variation must be above 0"));
      break;
    case ArrivalKind::kOnOff:
      FOLIOT_RETURN_IF_ERROR(needs(options.mean_on > Duration() && options.mean_off >= Duration(),
                                   "the mean length of a burst must be above 0, that of silence not negative"));
      break;
    case ArrivalKind::kPoisson:
    case ArrivalKind::kUniform: break;
  }
  return needs(positive(options.rate), "the rate must be above 0");
}

}  // namespace

std::string_view to_string(ArrivalKind kind) {
  for (const KindName& entry : kKindNames) {
    if (entry.kind == kind) return entry.name;
  }
  FOLIOT_CHECK(false);
}

std::optional<ArrivalKind> parse_arrival_kind(std::string_view name) {
  for (const KindName& entry : kKindNames) {
    if (entry.name == name) return entry.kind;
  }
  return std::nullopt;
}

Result<std::unique_ptr<ArrivalProcess>> make_arrivals(const ArrivalOptions& options) {
  FOLIOT_RETURN_IF_ERROR(check(options));
  using Pointer = std::unique_ptr<ArrivalProcess>;
  switch (options.kind) {
    case ArrivalKind::kPoisson: return Pointer(std::make_unique<Renewal>(options.rate, 1));
    case ArrivalKind::kGamma: return Pointer(std::make_unique<Renewal>(options.rate, options.coefficient_of_variation));
    case ArrivalKind::kUniform: return Pointer(std::make_unique<Renewal>(options.rate, 0));
    case ArrivalKind::kOnOff: return Pointer(std::make_unique<OnOff>(options.rate, options.mean_on, options.mean_off));
    case ArrivalKind::kSpike: return Pointer(std::make_unique<VaryingPoisson>(spike(options)));
    case ArrivalKind::kRamp:
      return Pointer(std::make_unique<VaryingPoisson>(std::vector<VaryingPoisson::Point>{
          {0, options.rate}, {options.ramp_length.to_seconds(), options.ramp_rate}}));
    case ArrivalKind::kReplay: return Pointer(std::make_unique<Replay>(options.instants));
  }
  FOLIOT_CHECK(false);
}

}  // namespace foliot
