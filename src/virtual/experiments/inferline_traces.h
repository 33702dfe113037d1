// Traces of InferLine's experiments (section 4.6): pieces in which the rate goes steadily from
// one value to another, with gamma-distributed gaps; and AutoScale's shapes.
#ifndef FOLIOT_VIRTUAL_EXPERIMENTS_INFERLINE_TRACES_H_
#define FOLIOT_VIRTUAL_EXPERIMENTS_INFERLINE_TRACES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "foundation/base/time.h"

namespace foliot {

struct RatePiece {
  double seconds = 30;
  double rate = 100;
  double end_rate = 100;
  double variation = 1;  // coefficient of variation of the gaps; the thesis' CV is its square
};
RatePiece steady(double rate, double seconds = 30, double variation = 1);

struct TunedTrace {
  std::string name;
  std::vector<RatePiece> pieces;
  size_t planned_pieces = 0;  // the first of them, which the plan is made for
};

// The shapes of AutoScale's traces "Big Spike" and "Dual Phase" as the thesis has them (Figure
// 4.6): 30 s for each minute, at most 300 queries per second. The first quarter is planned for.
TunedTrace big_spike();
TunedTrace instant_spike();

struct TraceArrivals {
  std::vector<Duration> planned;
  std::vector<Duration> live;  // since the end of what was planned for
};

// Pieces are `shortening` times as long.
TraceArrivals draw_arrivals(const TunedTrace& trace, double shortening, uint64_t seed);

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_EXPERIMENTS_INFERLINE_TRACES_H_
