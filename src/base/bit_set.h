// BitSet: a growing set of small integers, for questions such as "which devices
// that hold this model are free" that must cost the same for ten and for ten
// thousand of them.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_BASE_BIT_SET_H_
#define FOLIOT_BASE_BIT_SET_H_

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
    if (member / 64 >= words_.size()) words_.resize(member / 64 + 1);
    uint64_t& word = words_[member / 64];
    size_ += (word >> (member % 64) & 1) ^ 1;
    word |= uint64_t{1} << (member % 64);
  }
  void erase(uint32_t member) {
    if (!contains(member)) return;
    words_[member / 64] &= ~(uint64_t{1} << (member % 64));
    --size_;
  }
  bool contains(uint32_t member) const {
    return member / 64 < words_.size() && (words_[member / 64] >> (member % 64) & 1) != 0;
  }
  void clear() {
    if (size_ == 0) return;
    std::fill(words_.begin(), words_.end(), 0);
    size_ = 0;
  }
  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // In ascending order. `visit` may change the set; what it inserts into the
  // word under way is not seen.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (size_t i = 0; i < words_.size(); ++i) visit_word(i, words_[i], visit);
  }
  // The members that `other` has too.
  template <typename Visit>
  void for_each_common(const BitSet& other, Visit visit) const {
    const size_t words = std::min(words_.size(), other.words_.size());
    for (size_t i = 0; i < words; ++i) visit_word(i, words_[i] & other.words_[i], visit);
  }
  // The smallest member that `other` has too.
  std::optional<uint32_t> first_common(const BitSet& other) const {
    const size_t words = std::min(words_.size(), other.words_.size());
    for (size_t i = 0; i < words; ++i) {
      if (const uint64_t common = words_[i] & other.words_[i]) return member(i, common);
    }
    return std::nullopt;
  }

 private:
  static uint32_t member(size_t word_index, uint64_t word) {
    return static_cast<uint32_t>(word_index * 64) + static_cast<uint32_t>(std::countr_zero(word));
  }
  template <typename Visit>
  static void visit_word(size_t index, uint64_t word, Visit& visit) {
    for (; word != 0; word &= word - 1) visit(member(index, word));
  }

  std::vector<uint64_t> words_;
  uint32_t size_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_BASE_BIT_SET_H_
