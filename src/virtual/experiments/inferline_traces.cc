#include "virtual/experiments/inferline_traces.h"

#include "foundation/base/random.h"

namespace foliot {

RatePiece steady(double rate, double seconds, double variation) { return {seconds, rate, rate, variation}; }

TunedTrace big_spike() {
  TunedTrace trace{"big spike", {}, 15};
  for (const double rate : {78, 84, 90, 95, 99, 101, 100, 97, 93, 88,  84,  82,  83,  86,  90,   // planned
                            93, 95, 94, 91, 88, 87,  89,  93, 99, 180, 300, 290, 210, 120, 100,  //
                            96, 93, 90, 87, 85, 84,  85,  88, 91, 94,  96,  97,  95,  92,  89,   //
                            86, 84, 83, 84, 87, 90,  92,  93, 92, 90,  88,  87,  88,  90,  91}) {
    trace.pieces.push_back(steady(rate));
  }
  return trace;
}

TunedTrace instant_spike() {
  TunedTrace trace{"instant spike", {}, 15};
  for (const double rate : {100, 102, 105, 107, 110, 113, 115, 118, 120, 122, 124, 127, 130, 133, 136,  // planned
                            140, 146, 152, 158, 300, 170, 176, 184, 192, 200, 206, 212, 216, 218, 220,  //
                            222, 224, 222, 180, 140, 110, 90,  75,  62,  54,  48,  44,  40,  38,  36,   //
                            35,  34,  33,  32,  32,  31,  31,  30,  30,  30,  30,  30,  30,  30,  30}) {
    trace.pieces.push_back(steady(rate));
  }
  return trace;
}

TraceArrivals draw_arrivals(const TunedTrace& trace, double shortening, uint64_t seed) {
  Random random(seed);
  TraceArrivals to;
  double begin = 0;
  double at = 0;
  double planned_end = 0;
  for (size_t i = 0; i < trace.pieces.size(); ++i) {
    const RatePiece& piece = trace.pieces[i];
    const double seconds = piece.seconds * shortening;
    if (i == trace.planned_pieces) planned_end = begin;
    for (; at < begin + seconds;) {
      if (i < trace.planned_pieces) {
        to.planned.push_back(Duration::from_seconds(at));
      } else {
        to.live.push_back(Duration::from_seconds(at - planned_end));
      }
      const double rate = piece.rate + (piece.end_rate - piece.rate) * (at - begin) / seconds;
      at += random.gamma_with_variation(piece.variation) / rate;
    }
    begin += seconds;
  }
  return to;
}

}  // namespace foliot
