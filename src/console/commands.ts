/** Commands that create a run again: `rushes`, curl and Node.js. */
import { RUNS_PATH } from '../protocol/id.js'
import type { Kind, ModelDocument } from '../protocol/models.js'
import { isSentImage, runWords, type SentImage } from '../protocol/parameters.js'
import { isHttpUrl } from '../protocol/parse.js'
import { printable, printableJson, quoteWord } from '../protocol/text.js'

interface CommandRun {
  readonly kind: Kind
  readonly model: string
  readonly input: Readonly<Record<string, unknown>>
}

interface Command {
  readonly name: string
  readonly code: string
}

/** Without the document of the model, the flags are not known, and the command passes the input as JSON. */
export const commandsOf = (
  run: CommandRun,
  baseUrl: string,
  document: ModelDocument | undefined,
): readonly Command[] => [
  { name: 'rushes', code: rushesCommand(run, baseUrl, document) },
  { name: 'curl', code: curlCommand(run, baseUrl) },
  { name: 'Node.js', code: nodeModule(run, baseUrl) },
]

/** An image that was sent as data. The run does not contain its bytes, so the user must provide the file. */
const fileName = ({ content_type: type }: SentImage, index: number): string =>
  `image-${index + 1}.${printable(type)
    .replace(/^image\//, '')
    .replace('jpeg', 'jpg')}`

const sourcesOf = ({ input }: CommandRun): readonly unknown[] =>
  Array.isArray(input.image_urls) ? input.image_urls : []

const missingNotes = (run: CommandRun): readonly string[] =>
  sourcesOf(run).flatMap((source, index) =>
    isSentImage(source)
      ? [`${fileName(source, index)}: ${source.bytes} bytes that were sent with the run. Use your own file.`]
      : [],
  )

function rushesCommand(run: CommandRun, baseUrl: string, document: ModelDocument | undefined): string {
  const { image_urls: _, ...others } = run.input
  const sources = sourcesOf(run).map((source, index) =>
    isSentImage(source) ? fileName(source, index) : isHttpUrl(source) ? String(source) : undefined,
  )
  // `-i` takes only files and URLs. If there is another source, all are in `--input`.
  const areFlags = sources.every((word) => word !== undefined)
  const input = areFlags ? others : run.input
  const { words, rest } =
    document === undefined ? { words: [], rest: input } : runWords(document.input, input)
  const parts = [
    ['rushes', 'run', run.kind, ...words].join(' '),
    ...(areFlags ? sources.map((word) => `-i ${quoteWord(word ?? '', 'posix')}`) : []),
    ...(Object.keys(rest).length > 0 ? [`--input ${quoteWord(printableJson(rest), 'posix')}`] : []),
    `--model ${quoteWord(run.model, 'posix')}`,
    `--base-url ${quoteWord(baseUrl, 'posix')}`,
  ]
  return [...missingNotes(run).map((note) => `# ${note}`), parts.join(' \\\n  ')].join('\n')
}

/** The service refuses this text as a data: URL, so that no run is created before the file is in its place. */
const withoutImages = (run: CommandRun): CommandRun['input'] =>
  sourcesOf(run).some(isSentImage)
    ? {
        ...run.input,
        image_urls: sourcesOf(run).map((source, index) =>
          isSentImage(source) ? `data: URL of ${fileName(source, index)}` : source,
        ),
      }
    : run.input

/** Sends the JSON through standard input: a shell argument has at most 128 KiB, and a prompt can be longer. */
function curlCommand(run: CommandRun, baseUrl: string): string {
  // The heredoc is safe: JSON escapes newlines in strings, so no line of it can be the delimiter.
  const request = [
    `curl -sS ${quoteWord(`${baseUrl}${RUNS_PATH}`, 'posix')}`,
    '-H "Authorization: Bearer $RUSHES_API_KEY"',
    "-H 'Content-Type: application/json'",
    `--data-binary @- <<'JSON'\n${printableJson({ model: run.model, input: withoutImages(run) }, 2)}\nJSON`,
  ].join(' \\\n  ')
  return [...missingNotes(run).map((note) => `# ${note}`), request].join('\n')
}

const nodeModule = (run: CommandRun, baseUrl: string): string =>
  [
    '// Save as run.mjs, then: RUSHES_API_KEY=… node run.mjs',
    ...missingNotes(run).map((note) => `// ${note}`),
    `const runs = ${JSON.stringify(`${baseUrl}${RUNS_PATH}`)}`,
    'const headers = {',
    "  authorization: 'Bearer ' + process.env.RUSHES_API_KEY,",
    "  'content-type': 'application/json',",
    '}',
    `const body = JSON.stringify(${printableJson({ model: run.model, input: withoutImages(run) }, 2)})`,
    "const created = await fetch(runs, { method: 'POST', headers, body })",
    'if (created.status !== 201) throw new Error(await created.text())',
    'let run = await created.json()',
    "while (['queued', 'processing'].includes(run.status)) {",
    '  await new Promise((resolve) => setTimeout(resolve, 2000))',
    "  run = await (await fetch(runs + '/' + run.id, { headers })).json()",
    '}',
    'process.stdout.write(JSON.stringify(run.output?.urls ?? run.error))',
  ].join('\n')
