#include "engine/device/cpu/layout_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

namespace foliot {
namespace {

constexpr int64_t kLettersMax = 26;

bool is_letter(int64_t dimension, int64_t rank) { return dimension >= 0 && dimension < rank; }

char letter(int64_t dimension, char first) { return static_cast<char>(first + static_cast<char>(dimension)); }

}  // namespace

// The form of the bytes is described in engine/device/cpu/layout.h.
std::string layout_name(const std::string& layout) {
  if (layout.empty()) return "dense";
  if (layout.size() < 2 * sizeof(int64_t)) return "damaged";
  std::vector<int64_t> words(layout.size() / sizeof(int64_t));
  std::memcpy(words.data(), layout.data(), words.size() * sizeof(int64_t));
  if (words[0] < 0 || words[0] > kLettersMax || words[1] < 0 || words[1] > kLettersMax ||
      words.size() != static_cast<size_t>(2 + 3 * words[0] + 2 * words[1])) {
    return "damaged";
  }
  const int64_t rank = words[0];
  const int64_t* const dimensions = words.data() + 2;
  const int64_t* const blocks = dimensions + 3 * rank;
  std::string inner;
  std::vector<bool> is_blocked(static_cast<size_t>(rank));
  for (int64_t i = 0; i < words[1]; ++i) {
    const int64_t dimension = blocks[2 * i + 1];
    if (!is_letter(dimension, rank)) return "damaged";
    inner += fmt::format("{}{}", blocks[2 * i], letter(dimension, 'a'));
    is_blocked[static_cast<size_t>(dimension)] = true;
  }
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](int64_t dimension) { return dimensions[3 * dimension + 2]; });
  std::string outer;
  for (int64_t dimension : order) outer += letter(dimension, is_blocked[static_cast<size_t>(dimension)] ? 'A' : 'a');
  return outer + inner;
}

}  // namespace foliot
