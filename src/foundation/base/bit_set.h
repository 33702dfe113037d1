// BitSet: a growing set of small integers, for questions such as "which of the
// models that wait does this device hold" that must cost about the same for ten
// models and for ten thousand. A summary says which words are not empty, so that
// a sparse set is walked in the time of its members.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_FOUNDATION_BASE_BIT_SET_H_
#define FOLIOT_FOUNDATION_BASE_BIT_SET_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace foliot {

class BitSet {
 public:
  void insert(uint32_t member) {
    const size_t index = member / 64;
    if (index >= words_.size()) [[unlikely]]
      grow(index + 1);
    if ((words_[index] & bit(member)) != 0) return;
    ++size_;
    words_[index] |= bit(member);
    summary_[index / 64] |= bit(index);
  }
  void erase(uint32_t member) {
    if (!contains(member)) return;
    const size_t index = member / 64;
    words_[index] &= ~bit(member);
    if (words_[index] == 0) summary_[index / 64] &= ~bit(index);
    --size_;
  }
  void clear() {
    for_each_word([this](size_t index) { words_[index] = 0; });
    std::fill(summary_.begin(), summary_.end(), 0);
    size_ = 0;
  }
  bool contains(uint32_t member) const {
    return member / 64 < words_.size() && (words_[member / 64] & bit(member)) != 0;
  }
  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // In ascending order. The set must not change under it, except that the member that is
  // visited may be erased.
  template <typename Visit>
  void for_each(Visit visit) const {
    for_each_word([&](size_t index) { visit_word(index, words_[index], visit); });
  }
  // The members that `other` has too; likewise.
  template <typename Visit>
  void for_each_common(const BitSet& other, Visit visit) const {
    const size_t count = std::min(summary_.size(), other.summary_.size());
    for (size_t i = 0; i < count; ++i) {
      for (uint64_t left = summary_[i] & other.summary_[i]; left != 0; left &= left - 1) {
        const size_t index = i * 64 + lowest(left);
        visit_word(index, words_[index] & other.words_[index], visit);
      }
    }
  }
  // The smallest member that is at least `from` and that `other` has too.
  std::optional<uint32_t> first_common(const BitSet& other, uint32_t from = 0) const {
    const size_t count = std::min(summary_.size(), other.summary_.size());
    const size_t first = from / 64;
    for (size_t i = first / 64; i < count; ++i) {
      const uint64_t mask = i == first / 64 ? up_from(first) : ~uint64_t{0};
      for (uint64_t left = summary_[i] & other.summary_[i] & mask; left != 0; left &= left - 1) {
        const size_t index = i * 64 + lowest(left);
        const uint64_t common = words_[index] & other.words_[index] & (index == first ? up_from(from) : ~uint64_t{0});
        if (common != 0) return member(index, common);
      }
    }
    return std::nullopt;
  }
  // The smallest member that is at least `from`.
  std::optional<uint32_t> next(uint32_t from) const {
    const size_t first = from / 64;
    if (first >= words_.size()) return std::nullopt;
    if (const uint64_t left = words_[first] & up_from(from)) return member(first, left);
    for (size_t i = (first + 1) / 64; i < summary_.size(); ++i) {
      const uint64_t mask = i == (first + 1) / 64 ? up_from(first + 1) : ~uint64_t{0};
      const uint64_t left = summary_[i] & mask;
      if (left == 0) continue;
      const size_t index = i * 64 + lowest(left);
      return member(index, words_[index]);
    }
    return std::nullopt;
  }

 private:
  // Apart from insert(), which is called all the time and grows the set hardly ever.
  [[gnu::noinline, gnu::cold]] void grow(size_t word_count) {
    words_.resize(word_count);
    summary_.resize((word_count + 63) / 64);
  }
  static uint64_t bit(size_t position) { return uint64_t{1} << (position % 64); }
  static uint64_t up_from(size_t position) { return ~uint64_t{0} << (position % 64); }
  static size_t lowest(uint64_t word) { return static_cast<size_t>(std::countr_zero(word)); }
  static uint32_t member(size_t index, uint64_t word) { return static_cast<uint32_t>(index * 64 + lowest(word)); }

  template <typename Visit>
  void for_each_word(Visit visit) const {
    for (size_t i = 0; i < summary_.size(); ++i) {
      for (uint64_t left = summary_[i]; left != 0; left &= left - 1) visit(i * 64 + lowest(left));
    }
  }
  template <typename Visit>
  static void visit_word(size_t index, uint64_t word, Visit& visit) {
    for (; word != 0; word &= word - 1) visit(member(index, word));
  }

  std::vector<uint64_t> words_;
  std::vector<uint64_t> summary_;  // bit i: words_[i] is not zero
  uint32_t size_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_BIT_SET_H_
