/** Commands that create a run again: `rushes`, curl and Node.js. */
import { quoteWord } from '../host/shell.js'
import { RUNS_PATH } from '../protocol/id.js'
import { isSentImage, type SentImage } from '../protocol/media.js'
import { type MediaSource, mediaParameters, mediaSources, withMedia } from '../protocol/media-parameters.js'
import type { Kind, ModelDocument } from '../protocol/models.js'
import { printable, printableJson } from '../protocol/text.js'

interface CommandRun {
  readonly kind: Kind
  readonly model: string
  readonly input: Readonly<Record<string, unknown>>
}

interface Command {
  readonly name: string
  readonly code: string
}

/** `document`: of the model. Without it, only `image_urls` are known to be media. */
export function commandsOf(
  { input, ...others }: CommandRun,
  baseUrl: string,
  document: ModelDocument | undefined,
): readonly Command[] {
  const sources = mediaSources(input, mediaParameters(document?.input).keys())
  const run = { ...others, input, sources }
  return [
    { name: 'rushes', code: rushesCommand(run, baseUrl) },
    { name: 'curl', code: curlCommand(run, baseUrl) },
    { name: 'Node.js', code: nodeModule(run, baseUrl) },
  ]
}

/** A file that was sent as data. The run does not contain its bytes, so the user must provide the file. */
function fileName({ content_type: type }: SentImage, index: number): string {
  const [kind = '', extension = ''] = printable(type).replace('jpeg', 'jpg').split('/')
  return `${kind}-${index + 1}.${extension}`
}

/** A run with the sources of its media parameters. */
interface MediaRun extends CommandRun {
  readonly sources: readonly MediaSource[]
}

const missingNotes = ({ sources }: MediaRun): readonly string[] =>
  sources.flatMap(({ value }, index) =>
    isSentImage(value)
      ? [`${fileName(value, index)}: ${value.bytes} bytes that were sent with the run. Use your own file.`]
      : [],
  )

/** The prompt is a word of the command, unless it could be read as a flag, or act on the terminal where it is pasted. */
function rushesCommand(run: MediaRun, baseUrl: string): string {
  const { prompt, ...others } = withFiles(run, (name) => name)
  const isWord = typeof prompt === 'string' && /^[^\s-]/.test(prompt) && printable(prompt) === prompt
  const input = isWord || prompt === undefined ? others : { prompt, ...others }
  const parts = [
    `rushes run ${run.kind}${isWord ? ` ${quoteWord(prompt, 'posix')}` : ''}`,
    ...(Object.keys(input).length > 0 ? [`--input ${quoteWord(printableJson(input), 'posix')}`] : []),
    `--model ${quoteWord(run.model, 'posix')}`,
    `--base-url ${quoteWord(baseUrl, 'posix')}`,
  ]
  return [...missingNotes(run).map((note) => `# ${note}`), parts.join(' \\\n  ')].join('\n')
}

/** `valueFor`: in the place of a file that was sent as data. */
const withFiles = (
  { input, sources }: MediaRun,
  valueFor: (fileName: string) => string,
): CommandRun['input'] =>
  withMedia(
    input,
    sources.flatMap((source, index) =>
      isSentImage(source.value) ? [{ ...source, value: valueFor(fileName(source.value, index)) }] : [],
    ),
  )

/** The service refuses this text as a data: URL, so that no run is created before the file is in its place. */
const withoutFiles = (run: MediaRun): CommandRun['input'] => withFiles(run, (name) => `data: URL of ${name}`)

/** Sends the JSON through standard input: a shell argument has at most 128 KiB, and a prompt can be longer. */
function curlCommand(run: MediaRun, baseUrl: string): string {
  // The heredoc is safe: JSON escapes newlines in strings, so no line of it can be the delimiter.
  const request = [
    `curl -sS ${quoteWord(`${baseUrl}${RUNS_PATH}`, 'posix')}`,
    '-H "Authorization: Bearer $RUSHES_API_KEY"',
    "-H 'Content-Type: application/json'",
    `--data-binary @- <<'JSON'\n${printableJson({ model: run.model, input: withoutFiles(run) }, 2)}\nJSON`,
  ].join(' \\\n  ')
  return [...missingNotes(run).map((note) => `# ${note}`), request].join('\n')
}

/** Returns JSON as a string literal: an object literal of JavaScript would change integers of 64 bits. */
const textLiteral = (json: string): string =>
  `String.raw\`${json.replace(/[`$]/g, (each) => `\\u00${each.charCodeAt(0).toString(16)}`)}\``

const nodeModule = (run: MediaRun, baseUrl: string): string =>
  [
    '// Save as run.mjs, then: RUSHES_API_KEY=… node run.mjs',
    ...missingNotes(run).map((note) => `// ${note}`),
    `const runs = ${JSON.stringify(`${baseUrl}${RUNS_PATH}`)}`,
    'const headers = {',
    "  authorization: 'Bearer ' + process.env.RUSHES_API_KEY,",
    "  'content-type': 'application/json',",
    '}',
    `const body = ${textLiteral(printableJson({ model: run.model, input: withoutFiles(run) }, 2))}`,
    "const created = await fetch(runs, { method: 'POST', headers, body })",
    'if (created.status !== 201) throw new Error(await created.text())',
    'let run = await created.json()',
    "while (['queued', 'processing'].includes(run.status)) {",
    '  await new Promise((resolve) => setTimeout(resolve, 2000))',
    "  run = await (await fetch(runs + '/' + run.id, { headers })).json()",
    '}',
    'process.stdout.write(JSON.stringify(run.output?.urls ?? run.error))',
  ].join('\n')
