#include "foundation/objectstore/object_listing.h"

#include <gtest/gtest.h>

#include <string>

#include "foundation/objectstore/xml_leaves.h"

namespace foliot {
namespace {

TEST(ObjectListingTest, ReadsAPage) {
  const auto page = ObjectListing::parse(
      R"(<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">)"
      R"(<Name>models</Name><Prefix/><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>)"
      R"(<NextContinuationToken>a&#x2F;b&amp;c</NextContinuationToken>)"
      R"(<Contents><Key>a%20b/model.onnx</Key><ETag>&quot;0f&quot;</ETag><Size>12</Size><Owner><ID>1</ID></Owner></Contents>)"
      R"(<Contents><Size>0</Size><ETag>"ab-2"</ETag><Key>c</Key></Contents></ListBucketResult>)");
  ASSERT_TRUE(page.ok()) << page.status().message();
  ASSERT_EQ(page.value().objects.size(), 2u);
  EXPECT_EQ(page.value().objects[0], (StoredObject{.key = "a b/model.onnx", .etag = "0f", .bytes = 12}));
  EXPECT_EQ(page.value().objects[1], (StoredObject{.key = "c", .etag = "ab-2", .bytes = 0}));
  EXPECT_EQ(page.value().continuation, "a/b&c");
}

TEST(ObjectListingTest, KeysAreOnlyDecodedWhereTheyAreEncoded) {
  const auto page = ObjectListing::parse(
      "<ListBucketResult><Contents><Key>a%20b</Key><Size>1</Size></Contents><IsTruncated>false</IsTruncated>"
      "<NextContinuationToken>x</NextContinuationToken></ListBucketResult>");
  ASSERT_TRUE(page.ok()) << page.status().message();
  EXPECT_EQ(page.value().objects[0].key, "a%20b");
  EXPECT_EQ(page.value().continuation, "") << "the last page has no next one";
}

TEST(ObjectListingTest, RefusesWhatIsNoListing) {
  for (const char* const wrong :
       {"", "<html></html>", "<ListBucketResult>", "<ListBucketResult></Other>", "text",
        "<ListBucketResult><Contents><Size>x</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Size>99999999999999999999</Size></Contents></ListBucketResult>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<!DOCTYPE x [<!ENTITY a 'b'>]><ListBucketResult/>", "<ListBucketResult>&a;</ListBucketResult>",
        "<ListBucketResult>&#0;</ListBucketResult>", "<ListBucketResult>&amp</ListBucketResult>",
        "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%4</Key></Contents></ListBucketResult>"}) {
    EXPECT_FALSE(ObjectListing::parse(wrong).ok()) << wrong;
  }
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  EXPECT_FALSE(ObjectListing::parse(deep).ok());
}

TEST(ObjectListingTest, ReadsErrors) {
  const StoreError error = StoreError::parse(
      "<?xml version='1.0'?>\n<Error><Code>NoSuchBucket</Code><Message>It is <![CDATA[<gone>]]>.</Message></Error>\n");
  EXPECT_EQ(error.code, "NoSuchBucket");
  EXPECT_EQ(error.message, "It is <gone>.");
  EXPECT_EQ(StoreError::parse("<html><body>502</body></html>").code, "");
  EXPECT_EQ(StoreError::parse("Bad gateway").code, "");
}

TEST(ObjectListingTest, TextOfReferencesIsUtf8) {
  std::string text;
  const Status status =
      read_xml_leaves("<a>&#65;&#xe4;&#x20ac;&#x1f600;</a>", [&](std::string_view, const std::string& t) {
        text = t;
        return Status();
      });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(text, "Aä€😀");
}

TEST(ObjectListingTest, PercentEncodingIsReversed) {
  const std::string key = "a b+c/ä%~é\n=&?";
  EXPECT_EQ(percent_encoded(key, true), "a%20b%2Bc/%C3%A4%25~%C3%A9%0A%3D%26%3F");
  EXPECT_EQ(percent_encoded("/", false), "%2F");
  EXPECT_EQ(percent_decoded(percent_encoded(key, false)).value(), key);
}

}  // namespace
}  // namespace foliot
