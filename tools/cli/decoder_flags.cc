#include "tools/cli/decoder_flags.h"

namespace rhizome {

void AddDecoder(CLI::App& verb, std::string& scorer, std::string& decoder) {
  verb.add_option(
          "--scorer", scorer,
          "How a score is computed from two rows: dot, distmult, complex, transe, rotate or "
          "mlp; default: named in the file of --decoder; without one, dot")
      ->type_name("NAME");
  verb.add_option("--decoder", decoder,
                  "Weights of the scorer: `relations`, a row for each edge type; of mlp, "
                  "`layers.<k>.weight` and `layers.<k>.bias`")
      ->type_name("F.safetensors");
}

}  // namespace rhizome
