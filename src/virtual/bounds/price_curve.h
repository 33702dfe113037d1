// PriceCurve: a price per second of time, constant within windows of equal width, and
// its integrals. Zero outside its windows.
//
// Times are seconds since the beginning of the first window, as doubles: prices are
// the Lagrange multipliers of ClairvoyantBound, not instants that anything happens at.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_VIRTUAL_BOUNDS_PRICE_CURVE_H_
#define FOLIOT_VIRTUAL_BOUNDS_PRICE_CURVE_H_

#include <cstddef>
#include <vector>

namespace foliot {

// How long one kind of action takes, in seconds.
struct ActionLength {
  double mean = 0;
  double deviation = 0;  // standard deviation
  double fastest = 0;    // no draw is below, but for one in a billion
};

class PriceCurve {
 public:
  PriceCurve(double width, size_t windows);

  double width() const { return width_; }
  size_t windows() const { return prices_.size(); }
  double end() const { return width_ * static_cast<double>(windows()); }
  const std::vector<double>& prices() const { return prices_; }
  // REQUIRES: as many as there are windows, none negative.
  void set_prices(std::vector<double> prices);
  // The same curve in windows of half the width.
  void refine();

  // The integral from 0 to `at`.
  double until(double at) const;
  double total() const { return integral_.back(); }
  double highest() const;
  // A lower bound of the expected integral over an action that begins at `start`
  // and whose length is drawn only then. Where the price falls by d at an instant, an
  // action that ends near it by chance ends too soon by (mean - length)+, 0.4 standard
  // deviations on average, at a price that is higher by d.
  // REQUIRES: six standard deviations are shorter than a window.
  double expected(double start, const ActionLength& length) const;

  // Adds `amount` times the time that [from, to) shares with each window.
  void add_overlap(double from, double to, double amount, std::vector<double>& to_windows) const;

 private:
  double falls_near(double at) const;

  double width_;
  std::vector<double> prices_;
  std::vector<double> integral_;  // until the beginning of each window, and the end
  std::vector<double> falls_;     // by how much prices fall at the borders of a window; one more for the end
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_BOUNDS_PRICE_CURVE_H_
