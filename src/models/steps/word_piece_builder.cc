#include "models/steps/word_piece_builder.h"

#include <fmt/format.h>
#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <string>
#include <unordered_map>

#include "engine/device/word_piece.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

using Table = WordPieceTable;

bool is_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const auto size = static_cast<int32_t>(text.size());
  for (int32_t i = 0; i < size;) {
    UChar32 c = 0;
    U8_NEXT(bytes, i, size, c);
    if (c < 0) return false;
  }
  return true;
}

// As BERT's own tokenizer has them (google-research/bert, tokenization.py).
bool is_space(UChar32 c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || u_charType(c) == U_SPACE_SEPARATOR;
}

bool is_dropped(UChar32 c) {
  constexpr UChar32 kReplacement = 0xFFFD;
  constexpr uint32_t kOther = U_GC_C_MASK;  // controls, formats, unassigned, private, surrogates
  return c == 0 || c == kReplacement || (!is_space(c) && (U_GET_GC_MASK(c) & kOther) != 0);
}

bool is_punctuation(UChar32 c) {
  const bool is_symbol = (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  return is_symbol || (U_GET_GC_MASK(c) & U_GC_P_MASK) != 0;
}

bool is_chinese(UChar32 c) {
  constexpr std::array<std::pair<UChar32, UChar32>, 8> kRanges{{{0x4E00, 0x9FFF},
                                                                {0x3400, 0x4DBF},
                                                                {0x20000, 0x2A6DF},
                                                                {0x2A700, 0x2B73F},
                                                                {0x2B740, 0x2B81F},
                                                                {0x2B820, 0x2CEAF},
                                                                {0xF900, 0xFAFF},
                                                                {0x2F800, 0x2FA1F}}};
  return std::ranges::any_of(kRanges, [&](const auto& range) { return c >= range.first && c <= range.second; });
}

// Of a character that is left after lowering. `isolated`: it is a word of its own in any case.
uint32_t entry_of(UChar32 c, bool isolated) {
  const auto value = static_cast<uint32_t>(c);
  if (is_space(c)) return Table::entry(Table::kSpace, 0);
  return Table::entry(isolated || is_punctuation(c) ? Table::kIsolated : Table::kLetter, value);
}

// The characters of its canonical decomposition.
std::vector<UChar32> decompose(UChar32 c) {
  UErrorCode error = U_ZERO_ERROR;
  const UNormalizer2* const normalizer = unorm2_getNFDInstance(&error);
  FOLIOT_CHECK(U_SUCCESS(error));
  constexpr int32_t kUnits = 64;
  std::array<UChar, kUnits> units{};
  const int32_t size = unorm2_getDecomposition(normalizer, c, units.data(), kUnits, &error);
  FOLIOT_CHECK(U_SUCCESS(error));
  if (size < 0) return {c};
  std::vector<UChar32> characters;
  for (int32_t i = 0; i < size;) {
    UChar32 next = 0;
    U16_NEXT(units.data(), i, size, next);
    characters.push_back(next);
  }
  return characters;
}

std::vector<uint32_t> entries_of(UChar32 c, bool lower) {
  if (is_dropped(c)) return {};
  if (!lower) return {entry_of(c, is_chinese(c))};
  std::vector<uint32_t> entries;
  for (const UChar32 part : decompose(c)) {
    if (u_charType(part) != U_NON_SPACING_MARK) entries.push_back(entry_of(u_tolower(part), is_chinese(c)));
  }
  return entries;
}

// The parts of a table that say what becomes of code points.
struct Characters {
  std::vector<int32_t> pages, entries, expansions;

  explicit Characters(bool lower) {
    std::map<std::vector<int32_t>, int32_t> known;  // pages that are equal are there once
    std::map<std::vector<uint32_t>, uint32_t> known_expansions;
    for (uint32_t first = 0; first < Table::kCodePoints; first += Table::kPageSize) {
      std::vector<int32_t> page;
      for (uint32_t c = first; c < first + Table::kPageSize; ++c) {
        const std::vector<uint32_t> made = entries_of(static_cast<UChar32>(c), lower);
        uint32_t entry = made.empty() ? Table::entry(Table::kDropped, 0) : made[0];
        if (made.size() > 1) {
          const auto [at, is_new] = known_expansions.try_emplace(made, static_cast<uint32_t>(expansions.size()));
          if (is_new) {
            expansions.push_back(static_cast<int32_t>(made.size()));
            for (const uint32_t part : made) expansions.push_back(static_cast<int32_t>(part));
          }
          entry = Table::entry(Table::kExpanded, at->second);
        }
        page.push_back(static_cast<int32_t>(entry));
      }
      const auto [at, is_new] = known.try_emplace(page, static_cast<int32_t>(known.size()));
      if (is_new) entries.insert(entries.end(), page.begin(), page.end());
      pages.push_back(at->second);
    }
  }
};

// The trie of all pieces. Node 0 is where words begin.
class Pieces {
 public:
  // False: it is there already.
  bool add(std::string_view piece, int32_t id) {
    int32_t& token = tokens_[node_of(piece)];
    if (token != 0) return false;
    token = id + 1;
    return true;
  }
  // 0: there is none.
  int32_t id_plus_one(std::string_view piece) { return tokens_[node_of(piece)]; }
  // Where pieces begin that go on with a word.
  uint32_t continuation() { return node_of("##"); }
  const std::vector<int32_t>& tokens() const { return tokens_; }

  std::vector<int32_t> edges() const {
    const auto slots = static_cast<uint32_t>(std::bit_ceil(2 * edges_.size() + 1));
    std::vector<int32_t> table(size_t{slots} * 2);
    for (const auto& [key, next] : edges_) {
      uint32_t slot = Table::first_slot(key, slots);
      while (table[size_t{slot} * 2] != 0) slot = (slot + 1) & (slots - 1);
      table[size_t{slot} * 2] = static_cast<int32_t>(key);
      table[size_t{slot} * 2 + 1] = static_cast<int32_t>(next);
    }
    return table;
  }
  // Beyond it keys of edges would not be unique.
  bool full() const { return tokens_.size() >= (size_t{1} << 23); }

 private:
  uint32_t node_of(std::string_view piece) {
    uint32_t node = 0;
    for (const char byte : piece) {
      const uint32_t key = node * 256 + static_cast<uint8_t>(byte) + 1;
      const auto [at, is_new] = edges_.try_emplace(key, static_cast<uint32_t>(tokens_.size()));
      if (is_new) tokens_.push_back(0);
      node = at->second;
    }
    return node;
  }

  std::map<uint32_t, uint32_t> edges_;  // in order, so that equal vocabularies give equal tables
  std::vector<int32_t> tokens_ = {0};
};

Status add_lines(std::string_view vocabulary, Pieces& pieces) {
  if (vocabulary.size() > kVocabularyBytesMax) {
    return Status::invalid_argument(
        fmt::format("it has {} bytes; the limit is {}", vocabulary.size(), kVocabularyBytesMax));
  }
  size_t line = 0;
  for (size_t begin = 0; begin < vocabulary.size(); ++line) {
    const size_t end = std::min(vocabulary.find('\n', begin), vocabulary.size());
    std::string_view piece = vocabulary.substr(begin, end - begin);
    begin = end + 1;
    if (piece.ends_with('\r')) piece.remove_suffix(1);
    if (line >= kWordPiecesMax || pieces.full()) {
      return Status::invalid_argument(fmt::format("line {}: there are more than {} pieces", line + 1, kWordPiecesMax));
    }
    if (!is_utf8(piece)) return Status::invalid_argument(fmt::format("line {}: it is not UTF-8", line + 1));
    if (piece.empty() || pieces.add(piece, static_cast<int32_t>(line))) continue;
    return Status::invalid_argument(fmt::format("line {}: '{}' is there twice", line + 1, piece));
  }
  return Status();
}

}  // namespace

Result<std::vector<int32_t>> build_word_piece_table(std::string_view vocabulary, bool lower) {
  Pieces pieces;
  FOLIOT_RETURN_IF_ERROR(add_lines(vocabulary, pieces));
  std::vector<int32_t> table(Table::kHeader);
  table[Table::kMagicField] = Table::kMagic;
  constexpr std::array<std::pair<Table::Field, std::string_view>, 4> kSpecial{
      {{Table::kStart, "[CLS]"}, {Table::kEnd, "[SEP]"}, {Table::kPadding, "[PAD]"}, {Table::kUnknown, "[UNK]"}}};
  for (const auto& [field, piece] : kSpecial) {
    const int32_t id = pieces.id_plus_one(piece) - 1;
    if (id < 0) return Status::invalid_argument(fmt::format("there is no line '{}'", piece));
    table[field] = id;
  }
  table[Table::kContinuation] = static_cast<int32_t>(pieces.continuation());
  const Characters characters(lower);
  const std::vector<int32_t> edges = pieces.edges();
  table[Table::kEdgeSlots] = static_cast<int32_t>(edges.size() / 2);
  const std::array<std::pair<Table::Field, const std::vector<int32_t>*>, 5> parts{
      {{Table::kPages, &characters.pages},
       {Table::kEntries, &characters.entries},
       {Table::kExpansions, &characters.expansions},
       {Table::kEdges, &edges},
       {Table::kTokens, &pieces.tokens()}}};
  for (const auto& [field, part] : parts) {
    table[field] = static_cast<int32_t>(table.size());
    table.insert(table.end(), part->begin(), part->end());
  }
  return table;
}

}  // namespace foliot
