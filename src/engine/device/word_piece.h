// WordPieceTable: text into the ids of its words and pieces of words, as BERT reads it (Devlin et al., NAACL 2019;
// the pieces: Wu et al., "Google's Neural Machine Translation System", 2016, section 4.1).
//
// Characters are cleaned, and lowered and stripped of accents if the table says so; words end at white space, and
// punctuation and Chinese characters are words of their own. A word is divided from the left, each time at the longest
// piece of the vocabulary; one that cannot be divided, or is longer than kWordCharactersMax, is [UNK].
//
// A table is a constant of a model, made by models/steps/word_piece_builder.h:
//   header    kHeader numbers, in the order of Field
//   pages     for each 256 code points the number of their page
//   entries   of each page, one for each code point: what becomes of it (kind and code point)
//   expansions   of code points that become several: their count, and an entry for each
//   edges     of the trie of pieces: a hash table of pairs (node * 256 + byte + 1, next node)
//   tokens    by node: the id of the piece that ends there + 1, or 0
// What lies in it is not trusted: nothing is read beyond it, and each loop ends.
//
// Threading: any; it does not change.
#ifndef FOLIOT_ENGINE_DEVICE_WORD_PIECE_H_
#define FOLIOT_ENGINE_DEVICE_WORD_PIECE_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace foliot {

class WordPieceTable {
 public:
  static constexpr int32_t kMagic = 0x31545057;  // "WPT1"
  static constexpr size_t kWordCharactersMax = 100;
  static constexpr uint32_t kCodePoints = 0x110000;
  static constexpr uint32_t kPageSize = 256;
  static constexpr int64_t kLengthMin = 2, kLengthMax = 8192;  // of a row of ids

  // Of the header. Pages to tokens are where these parts begin.
  enum Field : size_t {
    kMagicField,
    kStart,
    kEnd,
    kPadding,
    kUnknown,
    kPages,
    kEntries,
    kExpansions,
    kEdges,
    kTokens,
    kEdgeSlots,
    kContinuation,
    kHeader
  };
  // What becomes of a code point: bits 29 to 31 of its entry. Below: the code point that it becomes, or where its
  // expansion is.
  enum Kind : uint32_t { kDropped, kLetter, kSpace, kIsolated, kExpanded };
  static constexpr uint32_t entry(Kind kind, uint32_t value) { return uint32_t{kind} << 29 | value; }
  // Where the search for an edge begins. `slots`: a power of two.
  static uint32_t first_slot(uint32_t key, uint32_t slots) { return (key * 0x9E3779B1U >> 7) & (slots - 1); }

  explicit WordPieceTable(std::span<const int32_t> numbers) : numbers_(numbers) {}

  bool is_valid() const;
  // [CLS], the ids of the text, [SEP], and [PAD] up to the end; the text is cut off where it does not fit. Bytes that
  // are not UTF-8 are left out. REQUIRES: is_valid(), and at least kLengthMin ids.
  void tokenize(std::span<const std::byte> text, std::span<int64_t> ids) const;

 private:
  class Words;
  // 0 beyond the table.
  uint32_t at(size_t index) const { return index < numbers_.size() ? static_cast<uint32_t>(numbers_[index]) : 0; }
  uint32_t field(Field field) const { return static_cast<uint32_t>(numbers_[field]); }
  // 0: there is none.
  uint32_t next_node(uint32_t node, uint8_t byte) const;

  const std::span<const int32_t> numbers_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_WORD_PIECE_H_
