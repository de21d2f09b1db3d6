/** Two small TypeScript projects that use the library: an ES module, and CommonJS with dynamic import. */

interface Consumer {
  readonly name: string
  readonly folder: string
  readonly file: string
  readonly text: string
  /** The script to run after compilation. */
  readonly compiled: string
  /** Lines that must not compile, with the expected error. */
  readonly wrong: readonly (readonly [string, RegExp])[]
}

export const TSCONFIG = {
  compilerOptions: {
    target: 'es2022',
    module: 'nodenext',
    moduleResolution: 'nodenext',
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    // Checks the types of the library too, and that declarations can name them.
    skipLibCheck: false,
    declaration: true,
    rootDir: '.',
    outDir: 'out',
  },
  include: ['*.ts', '*.mts', '*.cts'],
}

/** Code of both projects. It prints one line of JSON. */
const WORK = `
export async function work(createClient: typeof import('rushes')['createClient']) {
  const { RUSHES_BASE_URL: baseUrl = '', RUSHES_API_KEY: apiKey = '' } = process.env
  const client = createClient({ baseUrl, apiKey })
  const { id } = await client.create({ model: 'rushes/preview-image', input: { prompt: 'a fox' } })
  const phases: Phase[] = []
  for await (const { phase } of client.states(id)) phases.push(phase)
  const run: RunState = await client.wait(id, { timeoutMs: 60_000 })
  const [file] = await client.download(run, { folder: FOLDER })
  const refused = await client.get('run_none').catch((error: unknown) => error as RushesError)
  await client.close()
  const error = refused as RushesError
  console.log(JSON.stringify({ phases, path: file?.path, refused: error.code, exit: error.exitCode }))
}
`

export const CONSUMERS: readonly Consumer[] = [
  {
    name: 'an ES module',
    folder: 'esm',
    file: 'esm/main.mts',
    compiled: 'esm/out/main.mjs',
    text: `import { createClient, EXIT, HttpFailure, KINDS, MODEL_INPUTS, OWN_CODES, PROBLEMS, RushesError } from 'rushes'
import type { Client, CreateClientOptions, Fetch, ImageInput, OwnCode, Phase, ProblemCode, RunState, VideoInput, WaitOptions } from 'rushes'
const FOLDER = 'esm/made'
${WORK}
export const still = { prompt: 'a fox', aspect_ratio: '16:9', quality: 'high', image_urls: [] } satisfies ImageInput
export const film: VideoInput = { prompt: 'it runs', duration: '10', resolution: '1080p' }
export const code: OwnCode | ProblemCode = 'RATE_LIMITED'
export const values = [EXIT.outcomeUnknown, KINDS, MODEL_INPUTS.image.required, OWN_CODES.usage.exit, PROBLEMS.RATE_LIMITED.status]
export const broken: Fetch = async () => { throw new HttpFailure('no', { sent: false }) }
export const made: (options: CreateClientOptions) => Client = createClient
export const waiting: WaitOptions = { onTrouble: (error) => console.error(error.code) }
if (!(new RushesError('usage', 'x') instanceof Error)) throw new Error('no error')
await work(createClient)
`,
    wrong: [
      [
        `import type { VideoInput } from 'rushes'\nexport const a: VideoInput = { prompt: 'x', duration: '7' }`,
        /'"7"' is not assignable/,
      ],
      [
        `import type { ImageInput } from 'rushes'\nexport const a: ImageInput = { quality: 'high' }`,
        /'prompt' is missing/,
      ],
      [`import { createClient } from 'rushes'\ncreateClient({ baseUrl: 'x' })`, /'apiKey' is missing/],
      [`import { createApiClient } from 'rushes'\ncreateApiClient`, /no exported member/],
      [`import 'rushes/dist/rushes.js'`, /Cannot find module|not exported|side-effect import/],
    ],
  },
  {
    name: 'CommonJS, by dynamic import',
    folder: 'cjs',
    file: 'cjs/main.cts',
    compiled: 'cjs/out/main.cjs',
    text: `import type { Phase, RunState, RushesError } from 'rushes' with { 'resolution-mode': 'import' }
const FOLDER = 'cjs/made'
${WORK.replace(`import('rushes')['createClient']`, `import('rushes', { with: { 'resolution-mode': 'import' } }).createClient`)}
void import('rushes').then(({ createClient }) => work(createClient))
`,
    wrong: [],
  },
]
