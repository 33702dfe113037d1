// Builds the table by which text is divided into words and pieces (engine/device/word_piece.h), from the vocabulary of
// a BERT model and the character database of ICU.
#ifndef FOLIOT_MODELS_STEPS_WORD_PIECE_BUILDER_H_
#define FOLIOT_MODELS_STEPS_WORD_PIECE_BUILDER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"

namespace foliot {

inline constexpr size_t kVocabularyBytesMax = size_t{16} << 20;
inline constexpr size_t kWordPiecesMax = 1'000'000;

// `vocabulary`: the content of a vocab.txt, a piece in each line, whose id is the line's number from 0; pieces that do
// not begin a word start with ##. `lower`: characters are lowered, and accents are left out. Errors: kInvalidArgument
// naming line and limit: larger than a limit, not UTF-8, a piece twice, without [CLS], [SEP], [PAD] or [UNK].
Result<std::vector<int32_t>> build_word_piece_table(std::string_view vocabulary, bool lower);

}  // namespace foliot

#endif  // FOLIOT_MODELS_STEPS_WORD_PIECE_BUILDER_H_
