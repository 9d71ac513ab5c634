#!/usr/bin/env bash
# Inputs of people who mean harm: JSON that is nested without end, numbers that nobody has in every flag that
# takes one, lines and fields of a megabyte. Each is refused in seconds and little memory, with a short message,
# and nothing is made.
set -uo pipefail
cases=0
seconds=$((20 * ${RHIZOME_TEST_PATIENCE:-1}))
kilobytes=$((3 << 20))

# refused WHAT COMMAND...: the command ends by itself with an error of its own, says little, and leaves the store.
refused() {
  local what=$1 code=0
  shift
  cases=$((cases + 1))
  (ulimit -v $kilobytes && exec timeout -s KILL $seconds "$@") >out 2>err </dev/null || code=$?
  case $code in
    1 | 2 | 5 | 6) ;;
    *)
      echo "FOUND exit code $code of $what: $(printf '%q ' "$@" | cut -c 1-300): $(head -c 300 err)"
      found=1
      ;;
  esac
  if [ "$(wc -c <err)" -gt 2000 ]; then
    echo "FOUND a message of $(wc -c <err) bytes for $what: $(printf '%q ' "$@" | cut -c 1-300)"
    found=1
  fi
}
found=0

printf 'a\tb\nb\tc\nc\ta\n' >edges.tsv
printf '0\t1\n1\t2\n2\t0\n' >numbers.tsv
"$RHIZOME" ingest s.rz --edges edges.tsv >out 2>err || { echo "FOUND ingest: $(cat err)"; exit 1; }
before=$("$RHIZOME" info s.rz --json | sed -E 's/"(seconds|peak)[^,}]*//g')

# --- JSON, nested deep, closed and not, where values, names and ids are expected
nested=$(head -c 250000 /dev/zero | tr '\0' '[')
closed=$nested$(head -c 250000 /dev/zero | tr '\0' ']')
objects=$(yes '{"a":' | head -n 150000 | tr -d '\n')
for deep in "$nested" "$closed" "$objects"; do
  for line in "$deep" "{\"src\": \"a\", \"dst\": \"b\", \"type\": $deep}" "{\"src\": $deep, \"dst\": \"b\"}" \
    "{\"id\": $deep}" "{\"op\": $deep}" "{\"src\": \"a\", \"dst\": \"b\", \"weight\": $deep}" \
    "{\"id\": \"a\", \"rows\": {\"x\": $deep}}"; do
    printf '%s\n' "$line" >deep.jsonl
    refused "deep JSON" "$RHIZOME" put s.rz deep.jsonl
    refused "deep JSON" "$RHIZOME" delete s.rz deep.jsonl
  done
done
# A name and a field of nearly a megabyte.
long=$(head -c 900000 /dev/zero | tr '\0' x)
printf '{"src": "a", "dst": "b", "weight": "%s"}\n' "$long" >long.jsonl
refused "a long value" "$RHIZOME" put s.rz long.jsonl
printf '{"src": "a", "dst": "b", "%s": 1}\n' "$long" >long.jsonl
refused "a long name" "$RHIZOME" put s.rz long.jsonl
printf 'a\tb\t%s\n' "$long" >long.tsv
refused "a long field" "$RHIZOME" put s.rz long.tsv --columns src,dst,weight
refused "a long field" "$RHIZOME" ingest n.rz --edges long.tsv --columns src,dst,weight
{ printf 'graph:\n  nodes: '; printf '%s\n' "$nested"; } >metadata.yaml
refused "deep YAML" "$RHIZOME" import graphbolt n.rz --from .

# --- Numbers that nobody has
for number in 4611686018427387904 9223372036854775807 18446744073709551615 18446744073709551616 -1 1e30; do
  refused "a number" "$RHIZOME" ingest n.rz --edges numbers.tsv --vertices $number
  refused "a number" "$RHIZOME" plan ingest --edges numbers.tsv --vertices $number
  refused "a number" "$RHIZOME" partition --edges numbers.tsv --vertices $number
  refused "a number" "$RHIZOME" ingest n.rz --edges numbers.tsv --partitions $number
  refused "a number" "$RHIZOME" ingest n.rz --edges numbers.tsv --chunk-rows $number
  refused "a number" "$RHIZOME" ingest n.rz --edges numbers.tsv --inner-rows $number
  refused "a number" "$RHIZOME" ingest n.rz --edges numbers.tsv --threads $number
  refused "a number" "$RHIZOME" generate rmat --out made --scale $number
  refused "a number" "$RHIZOME" generate rmat --out made --scale 2 --edge-factor $number
  refused "a number" "$RHIZOME" generate rmat --out made --scale 2 --dim $number
  refused "a number" "$RHIZOME" generate planted --out made --scale 2 --classes $number
  refused "a number" "$RHIZOME" ingest n.rz --edges numbers.tsv --array "x=numbers.tsv:$number"
  refused "a number" "$RHIZOME" similar s.rz a --array x -k $number
  refused "a number" "$RHIZOME" put s.rz numbers.tsv --batch $number
  refused "a number" "$RHIZOME" sample s.rz --seeds edges.tsv --fanout $number --out o
  refused "a number" "$RHIZOME" restore nowhere.rz --backup $number other.rz
done
# Sizes that are believed, but not had.
refused "a size" "$RHIZOME" ingest n.rz --edges numbers.tsv --vertices 1000000000000

for made in n.rz made; do
  if [ -e $made ]; then
    echo "FOUND $made was made by an input that was refused"
    found=1
  fi
done
after=$("$RHIZOME" info s.rz --json | sed -E 's/"(seconds|peak)[^,}]*//g')
if [ "$before" != "$after" ]; then
  echo "FOUND the store was changed by an input that was refused: $after"
  found=1
fi
echo "count hostile inputs $cases"
exit $found
