/**
 * Runs every shell example of README.md and docs/ as it is written, against the local service. Each must end with 0 under
 * `set -euo pipefail`. The examples below one heading share a folder and a home, and run in order. Videos come from an engine
 * that copies a file; the renderer has its own tests.
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

/** Blocks that do not run here, by their first lines, with the reason. */
const NOT_HERE: readonly { readonly begins: string; readonly why: string }[] = [
  { begins: 'npm ci && npx', why: 'installs; e2e/local.test.ts runs the command' },
  { begins: 'export AWS_REGION=', why: 'needs a bucket; e2e/storage.test.ts' },
  { begins: 'rushes serve --storage', why: 'needs a bucket; e2e/storage.test.ts' },
  { begins: 'rushes admin migrate --from', why: 'needs PostgreSQL; service/migrate.test.ts' },
  { begins: 'export RUSHES_LIMITS_URL=', why: 'needs a Redis server; limiter/redis-ledger.test.ts' },
  { begins: 'aws s3 sync', why: 'needs a bucket and the tool of AWS' },
  { begins: 'npm cit', why: 'installs, and runs this very test' },
  { begins: 'npm install rushes', why: 'library-package.test.ts installs the packed tarball' },
  { begins: '#!/usr/bin/env bash\nset -euo pipefail\n\nmake_fox', why: 'e2e/faults.test.ts: ends in 13' },
  { begins: '#!/usr/bin/env bash\nset -euo pipefail\n\ncreate_patiently', why: 'e2e/faults.test.ts' },
  { begins: '#!/usr/bin/env bash\nset -euo pipefail\n\nfetch', why: 'e2e/faults.test.ts' },
  { begins: '#!/usr/bin/env bash\nset -euo pipefail\n\ncode=0\nrushes batch', why: 'docs-batch.test.ts' },
  {
    begins: 'rushes batch shots.yaml --watch',
    why: 'e2e/batch-watch.test.ts: waits until it is interrupted',
  },
  { begins: 'data=./service backup=./backup', why: 'docs-backup.test.ts: on the data of a service' },
  { begins: 'backup=./backup restored=./restored', why: 'docs-backup.test.ts' },
  { begins: 'mkdir -m 700 ./moved', why: 'docs-backup.test.ts' },
  { begins: 'rushes batch examples/', why: 'examples.test.ts: on a copy of the examples' },
  { begins: '#!/bin/sh\n# still.sh', why: 'a file for the service: service/engines/examples.test.ts' },
  { begins: '#!/bin/sh\n# comfy.sh', why: 'a file for the service: service/engines/examples.test.ts' },
]

/** The set-up of the examples below a heading, or below all headings of a page. */
interface Given {
  readonly files?: Readonly<Record<string, string | Uint8Array>>
  /** No settings: the example logs in with the key, which is typed. */
  readonly isNewUser?: boolean
  /** Runs before the first block. An id that it prints replaces the id in the examples. */
  readonly before?: string
  /** A script that uses the service that the block starts. */
  readonly asks?: string
  /** Standard output of the last block. */
  readonly says?: RegExp
}

const SHOTS = 'runs:\n  - { name: fox, kind: image, prompt: a fox, output: assets/fox.png }\n'

const ONE_RUN = 'rushes run image "a fox" --no-wait'

const AN_ACCOUNT =
  'rushes admin account create acme --balance 100; rushes admin key create --account acme --name ci'

const GIVEN: Readonly<Record<string, Given>> = {
  'README.md: One minute': {
    isNewUser: true,
    says: /exit 2\nexit 11\nlate\.png\n(run_\S+\tsucceeded\t.*\n){4}$/,
  },
  'README.md: Use a service': { isNewUser: true, files: { 'sketch.jpg': ONE_PIXEL_PNG } },
  'docs/agents.md': { files: { 'prompt.txt': 'a fox\n' } },
  'docs/batch.md: Batches': { files: { 'shots.yaml': SHOTS } },
  'docs/batch.md: Matrix': {
    files: {
      'icons.yaml':
        'runs: [{ name: "icon-{animal}-{size}", kind: image, prompt: "{animal}", matrix: { animal: [fox], size: [1] } }]\n',
    },
  },
  'docs/batch.md: Rows that use other rows': {
    files: {
      'fox.yaml':
        'runs: [{ name: sheet, kind: image, prompt: a fox }, { name: run, kind: image, prompt: it runs, image_urls: [row:sheet] }]\n',
    },
  },
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
  'docs/commands.md: rushes login': { isNewUser: true, files: { 'key.txt': 'rk_a-key\n' } },
  'docs/commands.md: rushes logout': { before: 'echo rk_a-key | rushes login --profile staging --no-verify' },
  'docs/commands.md: rushes config list': { before: 'rushes config set timeout 45m' },
  'docs/commands.md: rushes config get': {
    before: 'rushes config set timeout 45m; rushes config set models.image acme/still-1',
  },
  'docs/commands.md: rushes config path': { before: 'rushes config set timeout 45m' },
  'docs/commands.md: rushes show': { before: `${ONE_RUN} | rushes wait - > urls.txt; rushes list | cut -f1` },
  'docs/commands.md: rushes gallery': { before: 'rushes run image "a fox" -d' },
  'docs/gallery.md': { before: 'rushes run image "a fox" -d' },
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
      'key rotate',
    ]
      .concat('credits add', 'credits list', 'backup', 'verify', 'user add')
      .map((name) => [`docs/commands.md: rushes admin ${name}`, { before: AN_ACCOUNT }]),
  ),
  ...Object.fromEntries(
    ['list', 'remove', 'link'].map((name) => [
      `docs/commands.md: rushes admin user ${name}`,
      {
        before: `${AN_ACCOUNT}; for name in ann bob; do rushes admin user add $name@example.com --account acme; done`,
      },
    ]),
  ),
  'docs/accounts.md: Rotating a key': { before: AN_ACCOUNT },
  'docs/accounts.md: Users': { before: AN_ACCOUNT },
  'docs/scripting.md: Create now, wait later': { files: { 'prompts.txt': 'dusk\ndawn\n' } },
}

/** The id of the run in all examples. */
const EXAMPLE_ID = 'run_7k2m9x'

/** Other programs, which may not be installed. */
const STAND_INS: Readonly<Record<string, string>> = {
  fortune: 'echo a fox in a library',
  // Reads an image from standard input; its last argument is the result.
  magick: 'for result; do :; done; cat > "$result"; head -c 4 "$result" | grep -q PNG',
}

/** The service of an example listens on a free port, because 7878 may be in use, and records its process id for the test to stop it. */
const SERVE = '[ "$1" != serve ] || { shift; echo $$ > "$HOME/serve.pid"; set -- serve --port 0 "$@"; }'

interface Section {
  readonly title: string
  readonly scripts: readonly string[]
}

const PAGES = [
  'README.md',
  'docs/skill/SKILL.md',
  ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`),
].filter((path) => path.endsWith('.md'))
const SECTIONS = PAGES.flatMap(sectionsOf)
const hasJq = spawnSync('jq', ['--version']).status === 0
const isHere = (script: string): boolean =>
  !NOT_HERE.some(({ begins }) => script.startsWith(begins)) && (hasJq || !/\bjq\b/.test(script))

const pageOf = (title: string): string => title.split(':')[0] ?? ''

/** Whether the script ends with a service in the foreground. */
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
  )('%s', async (title, scripts) => {
    const {
      files = {},
      isNewUser = false,
      before = 'true',
      asks = 'true',
      says = /^/,
    } = GIVEN[title] ?? GIVEN[pageOf(title)] ?? {}
    const { place, key } = await placeFor(isNewUser)
    for (const [name, bytes] of Object.entries(files)) writeFileSync(join(place.folder, name), bytes)
    const [id = EXAMPLE_ID] = /^run_\w+$/m.exec((await bash(place, before)).stdout) ?? []
    let last = ''
    for (const script of scripts) {
      const ended = await run(place, script.replaceAll(EXAMPLE_ID, id), {
        typed: isNewUser ? `${key}\n` : undefined,
        asks,
      })
      expect(ended.code, `${script}\n${ended.stdout}\n${ended.stderr}`).toBe(0)
      expect(ended.stderr).not.toMatch(/^warning: /m)
      last = ended.stdout
    }
    expect(last).toMatch(says)
  })
})

describe('the lists above', () => {
  test('have no entries without an example', () => {
    const scripts = SECTIONS.flatMap((section) => section.scripts)
    expect(NOT_HERE.filter(({ begins }) => !scripts.some((script) => script.startsWith(begins)))).toEqual([])
    const titles = new Set(SECTIONS.flatMap(({ title }) => [title, pageOf(title)]))
    expect(Object.keys(GIVEN).filter((title) => !titles.has(title))).toEqual([])
  })

  test('leave most examples to run', () => {
    expect(SECTIONS.flatMap(({ scripts }) => scripts.filter(isHere)).length).toBeGreaterThan(20)
  })

  test('an example that fails in the middle is noticed', async () => {
    expect((await run(createPlace(), 'rushes run image\necho done')).code).toBe(2)
    expect((await run(createPlace(), 'false | cat\necho done')).code).toBe(1)
  })
})

/** A user with a home, a folder and an API key, so that the examples do not share a rate limit. */
async function placeFor(isNewUser: boolean): Promise<{ readonly place: Place; readonly key: string }> {
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
  if (isNewUser) return { place: place.with(env), key }
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

/** Runs one block, with the URL of the service in place of the URL in the docs. */
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

/** The `sh` and `bash` blocks by heading. */
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
