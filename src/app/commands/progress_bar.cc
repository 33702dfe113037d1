#include "app/commands/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace foliot {
namespace {

constexpr size_t kWidth = 30;

}  // namespace

ProgressBar::ProgressBar(std::string verb) : verb_(std::move(verb)), terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressBar::show(std::string_view what, std::string_view step, double share) {
  if (!terminal_) {
    // Only that it began: logs need no steps.
    if (!begun_.emplace(what).second) return;
    fmt::print(stderr, "{} {}\n", verb_, what);
    return;
  }
  const auto filled = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * kWidth);
  std::string bar(kWidth, '.');
  std::fill_n(bar.begin(), filled, '#');
  fmt::print(stderr, "\r\033[K{} {} [{}] {:3.0f} % {}", verb_, what, bar, share * 100, step);
  std::fflush(stderr);
  shown_ = true;
}

void ProgressBar::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace foliot
