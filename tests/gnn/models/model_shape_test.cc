#include "rhizome/gnn/model_shape.h"

#include <string>

#include "testing/testing.h"

namespace rhizome {
namespace {

ModelShape ExampleShape() {
  return {.spec = {.kind = ModelKind::kGcn,
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
  EXPECT_EQ(shape->spec.kind, ModelKind::kGcn);
  EXPECT_EQ(shape->spec.layers, 3u);
  EXPECT_EQ(shape->spec.hidden, 48);
  EXPECT_EQ(shape->spec.dropout, 0.25);
  EXPECT_TRUE(shape->spec.normalize_features);
  EXPECT_TRUE(shape->spec.no_edges);
  EXPECT_EQ(shape->inputs, 100);
  EXPECT_EQ(shape->classes, 7);
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
  EXPECT_STATUS(DecodeModelShape(replaced("\"layers\":3", "\"layers\":0")), kCorruption);
  EXPECT_STATUS(DecodeModelShape(replaced("\"layers\":3", "\"layers\":-1")), kCorruption);
  EXPECT_STATUS(DecodeModelShape(replaced("\"hidden\":48", "\"hidden\":1e9")), kCorruption);
  EXPECT_STATUS(DecodeModelShape(replaced("\"hidden\":48", "\"hidden\":999999999")), kCorruption);
  EXPECT_STATUS(DecodeModelShape(replaced("\"dropout\":0.25", "\"dropout\":1")), kCorruption);
  EXPECT_STATUS(DecodeModelShape(replaced("\"gcn\"", "\"gat\"")), kUnsupported);
  EXPECT_STATUS(DecodeModelShape(replaced("\"format\":1", "\"format\":2")), kUnsupported);
}

}  // namespace
}  // namespace rhizome
