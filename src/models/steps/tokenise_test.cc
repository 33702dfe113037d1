#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/device/word_piece.h"
#include "foundation/base/random.h"
#include "models/steps/word_piece_builder.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// [PAD] is 0, [UNK] 1, [CLS] 2, [SEP] 3.
constexpr std::string_view kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\n##aff\n##able\nhello\nworld\n##s\n,\n!\nna\n##ive\n中\n文\nss\nUn\n##\n日\na\n##"
    "a\n";
enum Id : int64_t {
  kPad,
  kUnk,
  kCls,
  kSep,
  kUn,
  kAff,
  kAble,
  kHello,
  kWorld,
  kS,
  kComma,
  kMark,
  kNa,
  kIve,
  kZhong,
  kWen,
  kSs,
  kUpperUn,
  kHashes,
  kRi,
  kA,
  kMoreA
};

class TokeniseTest : public testing::Test {
 protected:
  // The ids between [CLS] and [SEP].
  std::vector<int64_t> ids(std::string_view text, bool lower = true, size_t length = 16) const {
    const Result<std::vector<int32_t>> table = build_word_piece_table(kVocabulary, lower);
    EXPECT_TRUE(table.ok()) << table.status().message();
    const WordPieceTable words(*table);
    EXPECT_TRUE(words.is_valid());
    std::vector<int64_t> all(length, -1);
    words.tokenize(std::as_bytes(std::span(text)), all);
    EXPECT_EQ(all.front(), kCls);
    const auto end = std::ranges::find(all, kSep);
    EXPECT_NE(end, all.end());
    EXPECT_TRUE(std::all_of(end + 1, all.end(), [](int64_t id) { return id == kPad; }));
    return {all.begin() + 1, end};
  }
};

TEST_F(TokeniseTest, WordsAreDividedAtTheLongestPiece) {
  EXPECT_THAT(ids("unaffable worlds"), ElementsAre(kUn, kAff, kAble, kWorld, kS));
  EXPECT_THAT(ids("unworld"), ElementsAre(kUnk)) << "'world' goes on with no word";
  EXPECT_THAT(ids("aaa"), ElementsAre(kA, kMoreA, kMoreA));
}

TEST_F(TokeniseTest, PunctuationAndChineseCharactersAreWords) {
  EXPECT_THAT(ids("hello,world!!"), ElementsAre(kHello, kComma, kWorld, kMark, kMark));
  EXPECT_THAT(ids("中文hello"), ElementsAre(kZhong, kWen, kHello));
}

TEST_F(TokeniseTest, AccentsAndCaseAreLeftOut) {
  EXPECT_THAT(ids("HELLO nAïve"), ElementsAre(kHello, kNa, kIve));
  EXPECT_THAT(ids("hello", false), ElementsAre(kHello));
  EXPECT_THAT(ids("Un HELLO", false), ElementsAre(kUpperUn, kUnk));
  EXPECT_THAT(ids("naïve", false), ElementsAre(kUnk));
}

TEST_F(TokeniseTest, WhatIsNoTextIsLeftOut) {
  EXPECT_THAT(ids(std::string_view("hel\0lo\0\0", 8)), ElementsAre(kHello));
  EXPECT_THAT(ids("hel\xFFlo\xE4\xB8 \xC0\x80world\xF8\xED\xA0\x80"), ElementsAre(kHello, kWorld));
  EXPECT_THAT(ids("hel\xE2\x80\x8Blo\xEF\xBF\xBD"), ElementsAre(kHello)) << "a zero width space; U+FFFD";
  EXPECT_THAT(ids("hello\xC2\xA0world\xE3\x80\x80hello\tworld\r\n"), ElementsAre(kHello, kWorld, kHello, kWorld));
  EXPECT_TRUE(ids("").empty());
}

TEST_F(TokeniseTest, LongWordsAreUnknown) {
  const std::string longest(WordPieceTable::kWordCharactersMax, 'a');
  EXPECT_EQ(ids(longest, true, 200).size(), longest.size());
  EXPECT_THAT(ids(longest + "a hello", true, 200), ElementsAre(kUnk, kHello));
}

TEST_F(TokeniseTest, WhatDoesNotFitIsCutOff) {
  EXPECT_THAT(ids("hello unaffable world", true, 5), ElementsAre(kHello, kUn, kAff));
  EXPECT_THAT(ids("hello unaffabl", true, 4), ElementsAre(kHello, kUnk)) << "known to be unknown";
  EXPECT_TRUE(ids("hello", true, 2).empty());
}

TEST_F(TokeniseTest, VocabulariesAreChecked) {
  const auto error_of = [](std::string_view vocabulary) {
    return std::string(build_word_piece_table(vocabulary, true).status().message());
  };
  EXPECT_THAT(error_of("[PAD]\n[UNK]\n[CLS]\n"), HasSubstr("there is no line '[SEP]'"));
  EXPECT_THAT(error_of("[PAD]\na\nb\na\n"), HasSubstr("line 4: 'a' is there twice"));
  EXPECT_THAT(error_of("[PAD]\n\xFF\n"), HasSubstr("line 2: it is not UTF-8"));
  EXPECT_THAT(error_of(std::string(kVocabularyBytesMax + 1, 'a')), HasSubstr("the limit is 16777216"));
  EXPECT_TRUE(build_word_piece_table("[UNK]\r\n[CLS]\r\n[SEP]\r\n[PAD]\r\n", true).ok());
}

// Any change of a number must neither hang nor be read beyond.
TEST_F(TokeniseTest, DamagedTablesAreHarmless) {
  const std::vector<int32_t> table = *build_word_piece_table(kVocabulary, true);
  EXPECT_FALSE(WordPieceTable(std::span(table).first(5)).is_valid());
  Random random(7);
  const std::string_view text = "unaffable worlds, naïve 中文 \xE1\xBA\xB9\xED\x95\x9C";
  for (int round = 0; round < 2000; ++round) {
    std::vector<int32_t> damaged = table;
    for (uint64_t changes = random.below(4) + 1; changes > 0; --changes) {
      const uint64_t place =
          random.below(2) == 0 ? random.below(WordPieceTable::kHeader) : random.below(damaged.size());
      damaged[place] = static_cast<int32_t>(random.next());
    }
    damaged.resize(random.below(4) == 0 ? random.below(damaged.size()) : damaged.size());
    const WordPieceTable words(damaged);
    if (!words.is_valid()) continue;
    std::vector<int64_t> all(12);
    words.tokenize(std::as_bytes(std::span(text)), all);
  }
}

}  // namespace
}  // namespace foliot
