#include "gnn/models/model_shape.h"

#include <nlohmann/json.hpp>
#include <string>

#include "gnn/models/shape_types.h"
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

ModelShape TypedShape() {
  ModelShape shape = ExampleShape();
  shape.inputs = shape.spec.hidden;
  shape.vertex_types = {"paper", "a b", "venue"};
  shape.relations = {"cites"};
  shape.by_side = true;
  shape.typed_inputs = {{.array = "feat", .dim = 5}, {.array = "other", .dim = 7}, {}};
  return shape;
}

TEST(ModelShapeTest, TypesAreFormatThree) {
  const std::string text = EncodeModelShape(TypedShape());
  EXPECT_EQ(nlohmann::json::parse(text).at("format"), 3);
  EXPECT_EQ(nlohmann::json::parse(text).at("options").at("input-activation"), "tanh");
  EXPECT_EQ(DescribeModelShape(TypedShape()), text);
  const Result<ModelShape> shape = DecodeModelShape(text);
  ASSERT_OK(shape);
  EXPECT_EQ(EncodeModelShape(*shape), text);
  EXPECT_EQ(shape->vertex_types, TypedShape().vertex_types);
  EXPECT_EQ(shape->relations, TypedShape().relations);
  EXPECT_TRUE(shape->by_side);
  ASSERT_EQ(shape->typed_inputs.size(), 3u);
  EXPECT_EQ(shape->typed_inputs[1].array, "other");
  EXPECT_EQ(shape->typed_inputs[1].dim, 7);
  EXPECT_EQ(shape->typed_inputs[2].array, "");
}

TEST(ModelShapeTest, UntypedFilesDoNotHaveTheOptionOfTheInputLayer) {
  EXPECT_EQ(EncodeModelShape(ExampleShape()).find("input-activation"), std::string::npos);
  ModelShape shape = ExampleShape();
  shape.spec.options["input-activation"] = "relu";
  EXPECT_STATUS(CheckShape(shape), kInvalidArgument);
}

TEST(ModelShapeTest, BadTypesAreRefused) {
  const auto refused = [](const auto& change) {
    ModelShape shape = TypedShape();
    change(shape);
    return CheckShape(shape).has_value() ? StatusCode::kOk : CheckShape(shape).error().code();
  };
  const auto kBad = StatusCode::kInvalidArgument;
  EXPECT_EQ(refused([](ModelShape&) {}), StatusCode::kOk);
  EXPECT_EQ(refused([](ModelShape& shape) { shape.vertex_types[1] = "paper"; }), kBad);
  EXPECT_EQ(refused([](ModelShape& shape) { shape.relations = {"cites", ""}; }), kBad);
  EXPECT_EQ(refused([](ModelShape& shape) { shape.vertex_types.pop_back(); }), kBad);
  EXPECT_EQ(refused([](ModelShape& shape) { shape.typed_inputs[2].dim = 1; }), kBad);
  EXPECT_EQ(refused([](ModelShape& shape) { shape.typed_inputs[0].dim = 0; }), kBad);
  EXPECT_EQ(refused([](ModelShape& shape) { shape.typed_inputs[0].dim = -1; }), kBad);
  EXPECT_EQ(refused([](ModelShape& shape) { shape.inputs = 5; }), kBad);
}

TEST(ModelShapeTest, UnreadableTypesAreRefused) {
  for (const auto& [field, value] : {std::pair("vertex_types", "[1]"),
                                     {"vertex_types", "{}"},
                                     {"relations", "3"},
                                     {"by_side", "1"},
                                     {"typed_inputs", "[[]]"},
                                     {"typed_inputs", R"([{"array":"x"}])"}}) {
    SCOPED_TRACE(std::string(field) + ": " + value);
    nlohmann::json json = nlohmann::json::parse(EncodeModelShape(TypedShape()));
    json[field] = nlohmann::json::parse(value);
    EXPECT_STATUS(DecodeModelShape(json.dump()), kCorruption);
    json.erase(field);
    EXPECT_STATUS(DecodeModelShape(json.dump()), kCorruption);
  }
}

TEST(ModelShapeTest, TypesAreFoundByName) {
  const auto numbers = NumbersOfTypes("vertex type", {"b", "a"}, {"a", "c", "b"});
  ASSERT_OK(numbers);
  EXPECT_EQ(*numbers, (std::vector<std::uint32_t>{2, 0}));
  const auto missing = NumbersOfTypes("vertex type", {"b", "a", "d"}, {"b"});
  EXPECT_STATUS(missing, kUnsupported);
  EXPECT_NE(missing.error().message().find("vertex types a, d"), std::string::npos);
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
  EXPECT_STATUS(DecodeModelShape(replaced("\"format\":2", "\"format\":4")), kUnsupported);
  EXPECT_STATUS(DecodeModelShape(replaced("\"jump\"", "\"later\"")), kUnsupported);
  EXPECT_STATUS(DecodeModelShape(replaced("\"jump\":\"none\"", "\"jump\":\"high\"")), kCorruption);
}

}  // namespace
}  // namespace rhizome
