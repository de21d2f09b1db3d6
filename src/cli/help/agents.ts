/** `rushes help agents`: the contract in short, as Markdown. docs/agents.md is this text. */
import { KINDS, type Kind, type ParameterSchema } from '../../protocol/models.js'
import { describeValues, listedValues, parametersOf } from '../../protocol/parameters.js'
import { flagOf, negatedFlagOf } from '../flags/model-flags.js'
import { exitRows } from './exit-codes.js'

function flagWithValue(name: string, schema: ParameterSchema): string {
  const flag = flagOf(name)
  const values = describeValues(schema, '|')
  if (schema.type === 'boolean') return `${flag}|${negatedFlagOf(name)}`
  if (schema.type === 'array') return `${flag} <URL, path, run:<id> or -> (${values})`
  return `${flag} ${listedValues(schema) === undefined ? `<${values.replace(/^a /, '')}>` : values}`
}

const flagsOf = (kind: Kind): string =>
  Object.entries(parametersOf(kind))
    .filter(([name]) => name !== 'prompt')
    .map(([name, schema]) => `\`${flagWithValue(name, schema)}\``)
    .join(', ')

export const agents = (): string => `# rushes, for a language model

\`rushes\` creates asynchronous video and image runs at a service, waits for them, and brings the files home. Creating a run
costs money; nothing else does. Every command is non-interactive when standard input is no terminal.

## Before the first call

* \`rushes doctor --json\` says whether address, key, network and disk are in place; it costs nothing.
* Needed: \`RUSHES_BASE_URL\`, \`RUSHES_API_KEY\`, \`RUSHES_IMAGE_MODEL\`, \`RUSHES_VIDEO_MODEL\`, or the same from
  \`rushes config\` and \`rushes login\`. Never put the key on a command line.
* To practise without key, network or cost add \`--local\`: the results are drawn previews, not generated.
* \`--dry-run\` prints what would be sent, and sends nothing.

## Make something

\`\`\`sh
rushes run image "a red fox in fresh snow" -o fox.png --json
rushes run video "it runs" -i fox.png -o fox.mp4 --json
rushes run image --prompt-file prompt.txt -n 4 -o 'fox-{index}.{ext}' --json
\`\`\`

Any other model: \`rushes run model <provider/name> --input '{"prompt": "..."}' -o <path>\`. A prompt that may begin with a dash: \`--prompt "..."\` or \`--prompt-file <path>\`. Values are checked before anything is sent:

${KINDS.map((kind) => `* ${kind}: ${flagsOf(kind)}`).join('\n')}

\`rushes models --json\` has the same as JSON Schema. A run takes seconds to many minutes: raise the time limit of the tool that
calls you, or take two calls: \`rushes run ... --no-wait\` prints the id at once, \`rushes wait <id> --timeout 5m -o <path>\` picks
it up, as often as needed.

## Read the answer

* Standard output is the answer: with \`--json\` one object per run and line, every key always there:
  \`id\`, \`kind\`, \`model\`, \`status\`, \`output.urls\`, \`files[].path\`, \`error\`, \`created_at\`, \`finished_at\`,
  \`elapsed_ms\`, \`service\`. Without it one URL, or with \`-o\`/\`-d\` one path, per line.
* Standard error under \`--json\` is JSON lines: \`{"error":{"code","message","hint","http_status","exit_code","run_id"}}\` or
  \`{"warning":{"message"}}\`. \`hint\` says what to do next.
* The schemas of all of it are in \`docs/schemas\`.

## Act on the exit code

| code | what happened | what to do |
|--:|---|---|
${exitRows()
  .map(([code, { happened, next }]) => `| ${code} | ${happened} | ${next} |`)
  .join('\n')}

## Rules that keep money

1. Never repeat a create after 11, 12 or 13. After 13 look first: \`rushes list --status unconfirmed --json\`.
2. To ask for the same again without paying: \`--reuse\`. For many assets: \`rushes batch <manifest> --dry-run\`, then without;
   it makes only what is missing or stale, and a second run costs nothing. \`--max-runs <n>\` bounds what one call creates.
   A manifest: \`runs: [{name: fox, kind: image, prompt: a red fox, quality: high, output: assets/fox.png}]\`.
3. Lost an id? \`rushes list --json\` has every run that was created on this machine; \`rushes wait --last\` and \`--all\`.
4. An existing file is never replaced without \`--overwrite\`; where its name is known beforehand, that is exit 2 and nothing is
   paid for.
5. The limit of 20 requests in 10 s is kept for you, across processes: run commands side by side, and do not poll in a loop.

More: \`rushes help exit-codes\`, \`rushes help environment\`, \`rushes help scripting\`, \`rushes <command> --help\`.
`
