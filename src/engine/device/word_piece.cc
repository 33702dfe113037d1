#include "engine/device/word_piece.h"

#include <algorithm>
#include <array>
#include <bit>

namespace foliot {
namespace {

constexpr uint32_t kValueMask = (uint32_t{1} << 29) - 1;

WordPieceTable::Kind kind_of(uint32_t entry) { return static_cast<WordPieceTable::Kind>(entry >> 29); }

// Takes the next code point off the text. False: its first byte begins none, and is taken.
bool next_code_point(std::span<const std::byte>& text, uint32_t& code_point) {
  const auto byte = [&](size_t i) { return std::to_integer<uint32_t>(text[i]); };
  const uint32_t first = byte(0);
  const size_t size = first < 0x80 ? 1 : first >= 0xC2 && first < 0xE0 ? 2 : first >= 0xE0 && first < 0xF0 ? 3 : 4;
  bool is_valid = first < 0x80 || (first >= 0xC2 && first < 0xF5);
  code_point = size == 1 ? first : first & (0x7FU >> size);
  for (size_t i = 1; is_valid && i < size; ++i) {
    is_valid = i < text.size() && (byte(i) & 0xC0) == 0x80;
    if (is_valid) code_point = code_point << 6 | (byte(i) & 0x3F);
  }
  constexpr std::array<uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code_point >= 0xD800 && code_point < 0xE000;
  is_valid = is_valid && code_point >= kLeast[size] && code_point < WordPieceTable::kCodePoints && !is_surrogate;
  text = text.subspan(is_valid ? size : 1);
  return is_valid;
}

}  // namespace

// The word that is being read, and the ids of those before.
class WordPieceTable::Words {
 public:
  Words(const WordPieceTable& table, std::span<int64_t> ids) : table_(table), ids_(ids) {}

  bool full() const { return count_ == ids_.size(); }
  size_t count() const { return count_; }

  // REQUIRES: not kExpanded.
  void add(uint32_t entry) {
    switch (kind_of(entry)) {
      case kLetter: return append(entry & kValueMask);
      case kSpace: return end();
      case kIsolated:
        end();
        append(entry & kValueMask);
        return end();
      default: return;
    }
  }

  void end() {
    if (characters_ == 0) return;
    const size_t before = count_;
    if (characters_ > kWordCharactersMax || !divide()) {
      count_ = before;
      put(table_.field(kUnknown));
    }
    characters_ = 0;
    size_ = 0;
  }

 private:
  void append(uint32_t code_point) {
    if (++characters_ > kWordCharactersMax) return;
    const auto put = [&](uint32_t byte) { bytes_[size_++] = static_cast<uint8_t>(byte); };
    if (code_point < 0x80) return put(code_point);
    if (code_point < 0x800) {
      put(0xC0 | code_point >> 6);
    } else {
      if (code_point < 0x10000) {
        put(0xE0 | code_point >> 12);
      } else {
        put(0xF0 | (code_point >> 18 & 0x07));
        put(0x80 | (code_point >> 12 & 0x3F));
      }
      put(0x80 | (code_point >> 6 & 0x3F));
    }
    put(0x80 | (code_point & 0x3F));
  }

  // Ids beyond the last are counted by none: what does not fit is cut off. False: some part is no piece.
  bool divide() {
    uint32_t root = 0;
    for (size_t begin = 0; begin < size_;) {
      uint32_t node = root, token = 0;
      size_t end = begin;
      for (size_t i = begin; i < size_ && (node = table_.next_node(node, bytes_[i])) != 0; ++i) {
        const uint32_t found = table_.at(size_t{table_.field(kTokens)} + node);
        if (found == 0) continue;
        token = found;
        end = i + 1;
      }
      if (token == 0) return false;
      put(token - 1);
      begin = end;
      root = table_.field(kContinuation);
      if (root == 0 && begin < size_) return false;
    }
    return true;
  }

  void put(uint32_t id) {
    if (!full()) ids_[count_++] = id;
  }

  const WordPieceTable& table_;
  const std::span<int64_t> ids_;
  size_t count_ = 0;
  std::array<uint8_t, 4 * kWordCharactersMax> bytes_{};
  size_t size_ = 0;
  size_t characters_ = 0;  // also those beyond kWordCharactersMax
};

bool WordPieceTable::is_valid() const {
  if (numbers_.size() < kHeader || numbers_[kMagicField] != kMagic) return false;
  const uint32_t slots = field(kEdgeSlots);
  const auto holds = [&](Field part, uint64_t count) { return field(part) + count <= numbers_.size(); };
  return std::has_single_bit(slots) && holds(kEdges, uint64_t{slots} * 2) && holds(kPages, kCodePoints / kPageSize) &&
         holds(kEntries, kPageSize) && holds(kExpansions, 0) && holds(kTokens, 1);
}

uint32_t WordPieceTable::next_node(uint32_t node, uint8_t byte) const {
  const uint32_t key = node * 256 + byte + 1, slots = field(kEdgeSlots);
  uint32_t slot = first_slot(key, slots);
  for (uint32_t looks = 0; looks < slots; ++looks, slot = (slot + 1) & (slots - 1)) {
    const size_t edge = field(kEdges) + size_t{slot} * 2;
    const uint32_t found = at(edge);
    if (found == key) return at(edge + 1);
    if (found == 0) return 0;
  }
  return 0;
}

void WordPieceTable::tokenize(std::span<const std::byte> text, std::span<int64_t> ids) const {
  ids[0] = field(kStart);
  Words words(*this, ids.subspan(1, ids.size() - 2));
  while (!text.empty() && !words.full()) {
    uint32_t code_point = 0;
    if (!next_code_point(text, code_point)) continue;
    const uint32_t page = at(field(kPages) + size_t{code_point / kPageSize});
    const uint32_t entry = at(field(kEntries) + size_t{page} * kPageSize + code_point % kPageSize);
    if (kind_of(entry) != kExpanded) {
      words.add(entry);
      continue;
    }
    constexpr uint32_t kExpansionMax = 32;
    const size_t first = field(kExpansions) + size_t{entry & kValueMask};
    const uint32_t count = std::min(at(first), kExpansionMax);
    for (uint32_t i = 1; i <= count; ++i) words.add(at(first + i));
  }
  words.end();
  size_t i = 1 + words.count();
  ids[i++] = field(kEnd);
  std::fill(ids.begin() + static_cast<std::ptrdiff_t>(i), ids.end(), int64_t{field(kPadding)});
}

}  // namespace foliot
