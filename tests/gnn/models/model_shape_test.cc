#include "gnn/models/model_shape.h"

#include <string>

#include "testing/testing.h"

namespace rhizome {
namespace {

ModelShape ExampleShape() {
  return {.spec = {.kind = "gcn",
                   .layers = 3,
                   .hidden = 48,
                   .dropout = 0.25,
                   .normalize_features = true,
                   .no_edges = true},
          .inputs = 100,
          .classes = 7};
}

TEST(ModelShapeTest, DecodingGivesBackWhatWasEncoded) {
  const Result<ModelShape> shape = DecodeModelShape(EncodeModelShape(ExampleShape()));
  ASSERT_OK(shape);
  EXPECT_EQ(EncodeModelShape(*shape), EncodeModelShape(ExampleShape()));
  EXPECT_EQ(shape->spec.kind, "gcn");
  EXPECT_EQ(shape->spec.layers, 3u);
  EXPECT_EQ(shape->spec.hidden, 48);
  EXPECT_EQ(shape->spec.dropout, 0.25);
  EXPECT_TRUE(shape->spec.normalize_features);
  EXPECT_TRUE(shape->spec.no_edges);
  EXPECT_EQ(shape->inputs, 100);
  EXPECT_EQ(shape->classes, 7);
}

// The description is one that versions up to 0.1 wrote.
TEST(ModelShapeTest, FormatOneIsRead) {
  const Result<ModelShape> shape = DecodeModelShape(
      R"({"classes":7,"dropout":0.25,"format":1,"hidden":48,"inputs":100,"kind":"gcn","layers":3,)"
      R"("no_edges":true,"normalize_features":true})");
  ASSERT_OK(shape);
  EXPECT_EQ(EncodeModelShape(*shape), EncodeModelShape(ExampleShape()));
}

// A shape that format 1 can express is still described in format 1, so that checkpoints from before
// format 2 match their job.
TEST(ModelShapeTest, WhatFormatOneCanSayIsDescribedInIt) {
  EXPECT_EQ(DescribeModelShape(ExampleShape()),
            R"({"classes":7,"dropout":0.25,"format":1,"hidden":48,"inputs":100,"kind":"gcn",)"
            R"("layers":3,"no_edges":true,"normalize_features":true})");
  ModelShape other = ExampleShape();
  other.spec.options["norm"] = "layer";
  EXPECT_EQ(DescribeModelShape(other), EncodeModelShape(other));
}

TEST(ModelShapeTest, BadDescriptionsAreRefused) {
  const auto replaced = [](const std::string& from, const std::string& to) {
    std::string text = EncodeModelShape(ExampleShape());
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  EXPECT_STATUS(DecodeModelShape("{"), kCorruption);
  EXPECT_STATUS(DecodeModelShape("[]"), kCorruption);
  EXPECT_STATUS(DecodeModelShape(replaced("\"layers\":[", "\"layers\":[1,")), kCorruption);
  EXPECT_STATUS(DecodeModelShape(replaced("\"in\":48", "\"in\":49")), kCorruption);
  EXPECT_STATUS(DecodeModelShape(replaced("\"hidden\":48", "\"hidden\":1e9")), kCorruption);
  EXPECT_STATUS(DecodeModelShape(replaced("\"hidden\":48", "\"hidden\":999999999")), kCorruption);
  EXPECT_STATUS(DecodeModelShape(replaced("\"dropout\":0.25", "\"dropout\":1")), kCorruption);
  EXPECT_STATUS(
      DecodeModelShape(replaced("\"kind\":\"gcn\",\"layers\"", "\"kind\":\"later\",\"layers\"")),
      kUnsupported);
  EXPECT_STATUS(DecodeModelShape(replaced("\"format\":2", "\"format\":3")), kUnsupported);
  EXPECT_STATUS(DecodeModelShape(replaced("\"jump\"", "\"later\"")), kUnsupported);
  EXPECT_STATUS(DecodeModelShape(replaced("\"jump\":\"none\"", "\"jump\":\"high\"")), kCorruption);
}

}  // namespace
}  // namespace rhizome
