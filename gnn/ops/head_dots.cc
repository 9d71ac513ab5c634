#include "gnn/ops/head_dots.h"

#include "cache/job/compute_threads.h"
#include "cache/kernels/attention_kernels.h"
#include "cache/kernels/simd.h"
#include "gnn/ops/aggregate_ops.h"
#include "gnn/ops/dense.h"

namespace rhizome {
inline namespace internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::size_t CountOf(std::int64_t number) { return static_cast<std::size_t>(number); }

struct HeadDotsFunction : torch::autograd::Function<HeadDotsFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& z,
                               const torch::Tensor& vectors) {
    const torch::Tensor rows = z.contiguous();
    const torch::Tensor dense = vectors.contiguous();
    context->save_for_backward({rows, dense});
    torch::Tensor out = at::empty({rows.size(0), dense.size(0)});
    const RowsView view = RowsOf(rows);
    ForGroups(rows.size(0), [&](std::size_t, std::size_t begin, std::size_t end) {
      RowsView part = view;
      part.x = static_cast<const std::byte*>(view.x) + begin * view.stride * BytesOf(view.type);
      HeadDotsOfRows(part, end - begin, dense,
                     out.data_ptr<float>() + begin * CountOf(dense.size(0)));
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor rows = saved[0];
    const torch::Tensor gradient = gradients[0].contiguous();
    torch::Tensor of_rows;
    if (context->needs_input_grad(0)) of_rows = at::empty(rows.sizes());
    torch::Tensor groups =
        at::zeros({static_cast<std::int64_t>(kVectorGroups), saved[1].size(0), saved[1].size(1)});
    HeadDotsGradientArgs args;
    args.x = rows.data_ptr<float>();
    args.heads = CountOf(saved[1].size(0));
    args.width = CountOf(saved[1].size(1));
    args.vectors = saved[1].data_ptr<float>();
    args.gradient = gradient.data_ptr<float>();
    args.x_gradient = of_rows.defined() ? of_rows.data_ptr<float>() : nullptr;
    ForGroups(rows.size(0), [&](std::size_t g, std::size_t begin, std::size_t end) {
      HeadDotsGradientArgs group = args;
      group.vector_gradient = groups.data_ptr<float>() + g * args.heads * args.width;
      Kernels().head_dots_gradient(group, begin, end);
    });
    return {of_rows, SumOfGroups(groups)};
  }

 private:
  /// Calls body(g, begin, end) for the kVectorGroups runs of rows, on the compute threads. If there
  /// is at most one tile of rows, runs on this thread, which may itself be a compute thread.
  template <typename Body>
  static void ForGroups(std::int64_t rows, const Body& body) {
    const auto count = CountOf(rows);
    const auto run = [&](std::size_t g) {
      body(g, count * g / kVectorGroups, count * (g + 1) / kVectorGroups);
    };
    if (rows > kDenseRows) return ComputeFor(kVectorGroups, run);
    for (std::size_t g = 0; g < kVectorGroups; ++g) run(g);
  }
};

}  // namespace

torch::Tensor AsTrained(const torch::Tensor& values) {
  const bool trains = torch::GradMode::is_enabled();
  return trains && values.scalar_type() != torch::kFloat32 ? values.to(torch::kFloat32) : values;
}

torch::Tensor HeadDots(const torch::Tensor& z, const torch::Tensor& vectors) {
  TORCH_CHECK(z.dim() == 2 && vectors.dim() == 2 && z.size(1) == vectors.numel(),
              "attention: rows must have as many columns as the vectors have numbers");
  if (!z.is_cpu()) {
    const torch::Tensor heads = z.view({z.size(0), vectors.size(0), vectors.size(1)});
    return at::bmm(heads.transpose(0, 1), vectors.unsqueeze(2)).squeeze(2).t();
  }
  if (!torch::GradMode::is_enabled() && z.size(0) <= kDenseRows) {  // a tile, on the calling thread
    const torch::Tensor dense = vectors.contiguous();
    torch::Tensor out = at::empty({z.size(0), dense.size(0)});
    HeadDotsOfRows(RowsOf(z), CountOf(z.size(0)), dense, out.data_ptr<float>());
    return out;
  }
  return HeadDotsFunction::apply(AsTrained(z), vectors);
}

void HeadDotsOfRows(const RowsView& x, std::size_t rows, const torch::Tensor& vectors, float* out) {
  const HeadDotsArgs args{.type = x.type,
                          .x = x.x,
                          .x_stride = x.stride,
                          .heads = CountOf(vectors.size(0)),
                          .width = CountOf(vectors.size(1)),
                          .vectors = vectors.data_ptr<float>(),
                          .out = out};
  Kernels().head_dots(args, 0, rows);
}

}  // namespace internal
}  // namespace rhizome
