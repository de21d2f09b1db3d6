/**
 * Every shell example of README.md and docs/ runs as it is written, against the local service, and ends with 0 under
 * `set -euo pipefail`. What stands below one heading shares a folder and a home and runs in its order. Films come from an
 * engine that copies one: what the renderer draws is tested elsewhere.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  bash,
  createPlace,
  type Place,
  quoted,
  rushes,
  type Service,
  serve,
  start,
} from './support/binary.js'
import { ONE_PIXEL_PNG } from './support/engines.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Blocks that are not run here, by their beginning; each says why. */
const NOT_HERE: readonly { readonly begins: string; readonly why: string }[] = [
  { begins: 'npm ci && npx', why: 'installs; what it runs is in e2e/local.test.ts' },
  { begins: 'npm cit', why: 'installs, and runs this very test' },
  { begins: 'npm install rushes', why: 'library-package.test.ts installs what is packed' },
  { begins: '#!/usr/bin/env bash\nset -euo pipefail\n\nmake_fox', why: 'e2e/faults.test.ts: ends in 13' },
  { begins: '#!/usr/bin/env bash\nset -euo pipefail\n\ncreate_patiently', why: 'e2e/faults.test.ts' },
  { begins: '#!/usr/bin/env bash\nset -euo pipefail\n\nfetch', why: 'e2e/faults.test.ts' },
  { begins: '#!/usr/bin/env bash\nset -euo pipefail\n\ncode=0\nrushes batch', why: 'docs-batch.test.ts' },
  { begins: '#!/bin/sh\n# still.sh', why: 'a file for the service: service/engines/examples.test.ts' },
  { begins: '#!/bin/sh\n# comfy.sh', why: 'a file for the service: service/engines/examples.test.ts' },
]

/** What the reader has before the first block below a heading. */
interface Given {
  readonly files?: Readonly<Record<string, string | Uint8Array>>
  /** Nothing is set: the page itself logs in, with the key that is typed. */
  readonly stranger?: boolean
  /** Runs before the first block; an id that it prints takes the place of the examples' id. */
  readonly before?: string
  /** What is asked of a service that the block starts, for as long as it is there. */
  readonly asks?: string
  /** What the last block ends with, on standard output. */
  readonly says?: RegExp
}

const SHOTS = 'runs:\n  - { name: fox, kind: image, prompt: a fox, output: assets/fox.png }\n'

const ONE_RUN = 'rushes run image "a fox" --no-wait'

const AN_ACCOUNT =
  'rushes admin account create acme --balance 100; rushes admin key create --account acme --name ci'

const GIVEN: Readonly<Record<string, Given>> = {
  'README.md: One minute': {
    stranger: true,
    says: /exit 2\nexit 11\nlate\.png\n(run_\S+\tsucceeded\t.*\n){4}$/,
  },
  'README.md: Use a service': { stranger: true, files: { 'sketch.jpg': ONE_PIXEL_PNG } },
  'docs/agents.md: Make something': { files: { 'prompt.txt': 'a fox\n' } },
  'docs/batch.md: Batches': { files: { 'shots.yaml': SHOTS } },
  'docs/engines.md: Your own model': {
    files: { 'sketch.png': ONE_PIXEL_PNG },
    asks: 'rushes run image "a fox" -i sketch.png -o made.png && cmp sketch.png made.png',
  },
  'docs/commands.md: rushes run model': { files: { 'input.json': '{"prompt":"a fox"}' } },
  'docs/commands.md: rushes status': { before: ONE_RUN },
  'docs/commands.md: rushes wait': { before: ONE_RUN },
  'docs/commands.md: rushes download': {
    before: `${ONE_RUN} | rushes wait - > urls.txt; rushes list | cut -f1`,
  },
  'docs/commands.md: rushes batch': { files: { 'shots.yaml': SHOTS } },
  'docs/commands.md: rushes login': { stranger: true, files: { 'key.txt': 'rk_a-key\n' } },
  'docs/commands.md: rushes logout': { before: 'echo rk_a-key | rushes login --profile staging --no-verify' },
  'docs/commands.md: rushes config list': { before: 'rushes config set timeout 45m' },
  'docs/commands.md: rushes config get': {
    before: 'rushes config set timeout 45m; rushes config set models.image acme/still-1',
  },
  'docs/commands.md: rushes config path': { before: 'rushes config set timeout 45m' },
  'docs/commands.md: rushes show': { before: `${ONE_RUN} | rushes wait - > urls.txt; rushes list | cut -f1` },
  'docs/commands.md: rushes forget': { before: 'rushes run image --local "a fox"' },
  ...Object.fromEntries(
    [
      'account list',
      'account ban',
      'account unban',
      'key create',
      'key list',
      'key disable',
      'key enable',
      'key set',
    ]
      .concat('credits add', 'credits list', 'verify')
      .map((name) => [`docs/commands.md: rushes admin ${name}`, { before: AN_ACCOUNT }]),
  ),
  'docs/scripting.md: Create now, wait later': { files: { 'prompts.txt': 'dusk\ndawn\n' } },
}

/** The id of the run in all examples. */
const EXAMPLE_ID = 'run_7k2m9x'

/** Programs of others, which may not be here. */
const STAND_INS: Readonly<Record<string, string>> = {
  fortune: 'echo a fox in a library',
  // Takes a picture from standard input and names its result last.
  magick: 'for result; do :; done; cat > "$result"; head -c 4 "$result" | grep -q PNG',
}

/** A service of an example listens on a free port, since 7878 may be taken, and tells who it is, so that it can be ended. */
const SERVE = '[ "$1" != serve ] || { shift; echo $$ > "$HOME/serve.pid"; set -- serve --port 0 "$@"; }'

interface Section {
  readonly title: string
  readonly scripts: readonly string[]
}

const PAGES = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)].filter((path) =>
  path.endsWith('.md'),
)
const SECTIONS = PAGES.flatMap(sectionsOf)
const hasJq = spawnSync('jq', ['--version']).status === 0
const isHere = (script: string): boolean =>
  !NOT_HERE.some(({ begins }) => script.startsWith(begins)) && (hasJq || !/\bjq\b/.test(script))

/** Where a service stands in the foreground, to the end of the script. */
const serves = (script: string): boolean => /^([A-Z_]+=\S+ )*rushes serve\b(?!.*&$)/m.test(script)

let service: Service

beforeAll(async () => {
  const place = createPlace()
  const film = join(place.home, 'film.mp4')
  writeFileSync(film, Buffer.from('\0\0\0\x18ftypisom\0\0\x02\0isomiso2', 'latin1'))
  const models = ['image=acme/still-1', 'video=acme/cinema-1'].flatMap((name) => ['--model-name', name])
  service = await serve(place, [...models, '--engine', `video=cp ${quoted(film)} "$RUSHES_OUTPUT_DIR"`])
})

describe.concurrent('the shell examples', () => {
  test.each(
    SECTIONS.map(({ title, scripts }) => [title, scripts.filter(isHere)] as const).filter(
      ([, scripts]) => scripts.length > 0,
    ),
  )(
    '%s',
    async (title, scripts) => {
      const { files = {}, stranger = false, before = 'true', asks = 'true', says = /^/ } = GIVEN[title] ?? {}
      const { place, key } = await placeFor(stranger)
      for (const [name, bytes] of Object.entries(files)) writeFileSync(join(place.folder, name), bytes)
      const [id = EXAMPLE_ID] = /^run_\w+$/m.exec((await bash(place, before)).stdout) ?? []
      let last = ''
      for (const script of scripts) {
        const ended = await run(place, script.replaceAll(EXAMPLE_ID, id), {
          typed: stranger ? `${key}\n` : undefined,
          asks,
        })
        expect(ended.code, `${script}\n${ended.stdout}\n${ended.stderr}`).toBe(0)
        expect(ended.stderr).not.toMatch(/^warning: /m)
        last = ended.stdout
      }
      expect(last).toMatch(says)
    },
    120_000,
  )
})

describe('the lists above', () => {
  test('are of what there is', () => {
    const scripts = SECTIONS.flatMap((section) => section.scripts)
    expect(NOT_HERE.filter(({ begins }) => !scripts.some((script) => script.startsWith(begins)))).toEqual([])
    const titles = new Set(SECTIONS.map(({ title }) => title))
    expect(Object.keys(GIVEN).filter((title) => !titles.has(title))).toEqual([])
  })

  test('leave most examples to be run', () => {
    expect(SECTIONS.flatMap(({ scripts }) => scripts.filter(isHere)).length).toBeGreaterThan(20)
  })

  test('an example that fails in its middle is noticed', async () => {
    expect((await run(createPlace(), 'rushes run image\necho done')).code).toBe(2)
    expect((await run(createPlace(), 'false | cat\necho done')).code).toBe(1)
  })
})

/** A person with a home, a folder and a key of their own, so that nobody waits for another's limit. */
async function placeFor(stranger: boolean): Promise<{ readonly place: Place; readonly key: string }> {
  const words = ['admin', 'key', 'create', '--account', 'default', '--data', service.data]
  const key = (await rushes(createPlace(), words)).stdout.trim()
  const place = createPlace()
  const bin = join(place.home, 'bin')
  mkdirSync(bin)
  const [, ours = ''] = readFileSync(join(place.home, '..', 'bin', 'rushes'), 'utf8').split('\n')
  for (const [name, text] of Object.entries({ ...STAND_INS, rushes: `${SERVE}\n${ours}` })) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  const env = { PATH: `${bin}:${place.env.PATH}` }
  if (stranger) return { place: place.with(env), key }
  const settings = {
    RUSHES_BASE_URL: service.url,
    RUSHES_API_KEY: key,
    RUSHES_IMAGE_MODEL: 'acme/still-1',
    RUSHES_VIDEO_MODEL: 'acme/cinema-1',
  }
  return { place: place.with({ ...env, ...settings }), key }
}

interface RunOptions {
  readonly typed?: string | undefined
  readonly asks?: string
}

/** Runs one block; the address that the docs show is that of the service. */
async function run(place: Place, script: string, { typed, asks = 'true' }: RunOptions = {}) {
  const text = `set -euo pipefail\n${script.replaceAll('https://api.example.com', service.url)}`
  if (!serves(script))
    return typed === undefined
      ? bash(place, text)
      : start(place, ['-c', text], { command: 'bash', stdin: typed }).ended
  const running = start(place, ['-c', text], { command: 'bash', stdin: 'ignore' })
  await running.says(
    'stdout',
    /^export RUSHES_BASE_URL=http:\/\/127\.0\.0\.1:\d+\nexport RUSHES_API_KEY=\S+$/m,
  )
  const asked = await bash(place, `set -e\n${running.said.stdout}${asks}`)
  expect(asked.code, asked.stderr).toBe(0)
  process.kill(Number(readFileSync(join(place.home, 'serve.pid'), 'utf8')), 'SIGTERM')
  return running.ended
}

/** The blocks in `sh` and `bash` by the heading they stand below. */
function sectionsOf(page: string): readonly Section[] {
  const sections = new Map<string, string[]>()
  let title = page
  for (const [, heading, language, script = ''] of readFileSync(join(ROOT, page), 'utf8').matchAll(
    /^#+ (.*)$|^```(\w*)\n([\s\S]*?)^```$/gm,
  )) {
    if (heading !== undefined) title = `${page}: ${heading}`
    else if (language === 'sh' || language === 'bash')
      sections.set(title, [...(sections.get(title) ?? []), script])
  }
  return [...sections].map(([each, scripts]) => ({ title: each, scripts }))
}
