/** What a batch writes for GitHub Actions: the job summary, annotations, and the lines of `--report`. */
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { type JobSummary, summaryText } from '../../src/cli/batch/ci-reports.js'
import {
  type CommandLine,
  createCliService,
  objects,
  outputOf,
  scripted,
  temporaryFolder,
  usageErrorOf,
  wordsOf,
} from '../support/index.js'

const row = (name: string, status = 'create', reason = 'missing') => [status, name, `${name}.png`, reason]
const summary = (rows: JobSummary['rows']): JobSummary => ({
  manifest: { path: 'shots.yaml' },
  line: `${rows.length} runs`,
  rows,
})
const rowsOf = (text: string): readonly string[] => text.split('\n').filter((line) => line.startsWith('| '))

it('a job summary has the table of the plan', () => {
  expect(summaryText(summary([row('fox')]))).toBe(
    [
      '### shots.yaml',
      '',
      '1 runs.',
      '',
      '| status | name | file | reason |',
      '| --- | --- | --- | --- |',
      '| create | fox | fox.png | missing |',
      '',
      '',
    ].join('\n'),
  )
})

it('a job summary begins with failed rows', () => {
  const rows = [row('a', 'created'), row('b', 'failed', 'no'), row('c', 'blocked', 'needs b')]
  const names = rowsOf(summaryText(summary(rows))).map((line) => line.split(' | ')[1])
  expect(names).toEqual(['name', '---', 'b', 'c', 'a'])
})

it('a job summary stays below the limit of GitHub with the longest cells', () => {
  const long = '\u{1f98a}'.repeat(1_000)
  const many = Array.from({ length: 700 }, () => Array<string>(4).fill(long))
  const text = summaryText(summary(many))
  expect(Buffer.byteLength(text)).toBeLessThan(1_048_576)
  expect(text).toMatch(/\n550 more runs are not shown\.\n/)
})

it('a job summary shows names and reasons as they are, whatever they contain', () => {
  const hostile = '</td><img src=x onerror=1> `a` | ![i](https://x) <!-- &lt; \n# h'
  const [, , line = ''] = rowsOf(summaryText(summary([row(hostile)])))
  expect(line).toContain(
    '\\</td\\>\\<img src=x onerror=1\\> \\`a\\` \\| \\!\\[i\\](https://x) \\<\\!-- \\&lt;  \\# h',
  )
  expect(line).not.toMatch(/(?<!\\)[<>|`](?! |$)/)
})

const FOX = { name: 'fox', prompt: 'a fox', output: 'icons/fox one.png' }
const HEN = { name: 'hen', prompt: 'a hen' }

async function createBatch(rows: readonly object[] = [FOX, HEN]) {
  const service = await createCliService()
  const folder = temporaryFolder()
  const manifest = join(folder, 'art', 'shots.json')
  mkdirSync(join(folder, 'art'))
  writeFileSync(manifest, JSON.stringify({ defaults: { kind: 'image' }, runs: rows }, null, 1))
  const summaryPath = join(folder, 'summary.md')
  const env = { GITHUB_ACTIONS: 'true', GITHUB_WORKSPACE: folder, GITHUB_STEP_SUMMARY: summaryPath }
  return {
    folder,
    manifest,
    service,
    summary: () => (existsSync(summaryPath) ? readFileSync(summaryPath, 'utf8') : ''),
    run: (flags: CommandLine, more: Parameters<typeof service.run>[1] = {}) =>
      service.run(['batch', manifest, ...wordsOf(flags)], { ...more, env: { ...env, ...more?.env } }),
  }
}

const refusing = (message: string) =>
  scripted({ status: 400, body: { error: { code: 'invalid_input', message } } }).fetch
const annotations = (stderr: string): readonly string[] =>
  stderr.split('\n').filter((line) => line.startsWith('::'))

it('in GitHub Actions --dry-run and --check write the plan to the job summary, and --check an annotation for each row', async () => {
  const batch = await createBatch()
  outputOf(await batch.run('--dry-run'))
  expect(rowsOf(batch.summary())[2]).toBe('| create | fox | icons/fox one.png | missing |')
  const { code, stderr } = await batch.run('--check')
  expect(code).toBe(10)
  expect(annotations(stderr)).toEqual([
    expect.stringMatching(/^::error file=art\/shots\.json,line=\d+,title=fox::icons\/fox one\.png: create/),
    expect.stringMatching(/^::error file=art\/shots\.json,line=\d+,title=hen::/),
  ])
})

it('in GitHub Actions a batch writes its results to the job summary', async () => {
  const batch = await createBatch()
  outputOf(await batch.run([]))
  expect(rowsOf(batch.summary()).slice(0, 3)).toEqual([
    '| status | name | file | reason |',
    '| --- | --- | --- | --- |',
    '| created | fox | icons/fox one.png | missing |',
  ])
})

it('in GitHub Actions a row that fails is an annotation at its line, and the summary names the rows that it blocks', async () => {
  const batch = await createBatch([FOX, { ...HEN, image_urls: ['row:fox'] }])
  const { stderr } = await batch.run([], { fetch: refusing('50% no: foxes,\n::error::x') })
  expect(annotations(stderr)).toEqual([
    expect.stringMatching(/^::error file=art\/shots\.json,line=\d+,title=fox::.*50%25 no: foxes,/),
  ])
  expect(batch.summary()).toMatch(/2 runs: 1 failed, 1 blocked\.\n\n\| status \| name \|/)
  expect(rowsOf(batch.summary()).slice(2)).toEqual([
    expect.stringMatching(/^\| failed \| fox \| .* 50% no: foxes,/),
    '| blocked | hen | hen.png | needs fox |',
  ])
})

it('in GitHub Actions the mistakes of a manifest are annotations at their lines', async () => {
  const batch = await createBatch([{ ...FOX, kind: 'imag' }])
  const { code, stderr } = await batch.run([])
  expect(code).toBe(2)
  expect(annotations(stderr)[0]).toMatch(/^::error file=art\/shots\.json,line=\d+,title=Manifest::.*imag/)
  expect(annotations(stderr).at(-1)).toMatch(/^::error title=rushes batch::The manifest .*%0A/)
})

it('in GitHub Actions a batch writes at most nine annotations, so that GitHub shows the last one', async () => {
  const batch = await createBatch(Array.from({ length: 12 }, (_, at) => ({ ...HEN, name: `hen-${at}` })))
  const { code, stderr } = await batch.run([], { fetch: refusing('no') })
  expect(code).toBe(3)
  expect(annotations(stderr)).toHaveLength(9)
})

it('in GitHub Actions --json writes no annotations', async () => {
  const batch = await createBatch()
  const { code, stderr } = await batch.run('--check --json')
  expect({ code, stderr }).toEqual({ code: 10, stderr: '' })
})

/** What the runner makes of a line of the log: `ActionCommand.TryParseV2`, then `TryParse`. */
const COMMANDS = ['error', 'warning', 'notice', 'debug', 'group', 'add-mask', 'add-matcher', 'stop-commands']
const commandIn = (line: string): string | undefined => {
  const [, name] = /^::([^ ]*?)(?: .*?)?::/.exec(line.trimStart()) ?? /##\[([^\] ]*).*?\]/.exec(line) ?? []
  return COMMANDS.find((each) => each === name)
}

describe('names, paths and messages of a batch in the log of a job', () => {
  const HOSTILE = [
    { name: '::warning::one', prompt: '::debug::x', output: '::stop-commands::x.png' },
    { name: '\u3000::error file=x::two', prompt: 'x', output: ' ::group::x.png' },
    { name: 'a ##[error]three', prompt: '##[group]x', output: '##[error]x.png' },
  ]

  let batch: Awaited<ReturnType<typeof createBatch>>
  beforeAll(async () => {
    batch = await createBatch(HOSTILE)
  })

  it.each([
    [['--dry-run']],
    [['--check']],
    [['--check', '--json']],
    [['--force']],
    [['--force', '--json']],
    [['--force', '--debug']],
  ])('are no commands: %j', async (words) => {
    const { stdout, stderr } = await batch.run(words)
    const printed = `${stdout}${stderr}`.split(/[\r\n]+/)
    const commands = printed.filter((line) => commandIn(line) !== undefined)
    const own = /^::error (file=art\/shots\.json,|title=rushes batch::)/
    expect(commands.filter((line) => !own.test(line))).toEqual([])
    expect(stdout).toContain('stop-commands')
    if (words.includes('--json')) objects(stdout)
  })

  it('cannot become commands when a run fails or the manifest has mistakes', async () => {
    const failing = await createBatch(HOSTILE.slice(0, 1))
    const fetch = refusing('##[error]no\n::error::no')
    const wrong = await createBatch([{ name: 'x', '::warning::y': 1, prompt: 'x', kind: '##[group]' }])
    for (const { stderr } of [await failing.run([], { fetch }), await wrong.run([])])
      for (const line of stderr.split('\n'))
        if (commandIn(line) !== undefined) expect(line).toMatch(/^::error (file=art\/|title=rushes)/)
  })

  it('stay as they are outside of GitHub Actions', async () => {
    const { stdout } = await batch.run('--force', { env: { GITHUB_ACTIONS: '' } })
    expect(stdout).toContain('##[error]x.png')
  })
})

const reported = (path: string) => JSON.parse(readFileSync(path, 'utf8'))

it('--report writes one document with the objects of --json, beside the printed text', async () => {
  const batch = await createBatch()
  const path = join(batch.folder, 'report.json')
  const plan = await batch.run(`--check --report ${path}`)
  expect(plan.stdout).toMatch(/^create\tfox\t/)
  expect(reported(path)).toMatchObject({
    runs: [
      { name: 'fox', action: 'create' },
      { name: 'hen', action: 'create' },
    ],
    summary: { create: 2 },
  })
  const made = await batch.run(`--report ${path}`)
  expect(made.stdout).toMatch(/fox one\.png\n/)
  expect(reported(path).summary).toMatchObject({ created: 2, failed: 0 })
  const checked = await batch.run(`--check --json --report ${path}`)
  const { runs, summary } = reported(path)
  expect(objects(checked.stdout)).toEqual([...runs, { summary }])
})

it('--report is not written by a dry run', async () => {
  const batch = await createBatch()
  const path = join(batch.folder, 'report.json')
  outputOf(await batch.run(`--dry-run --report ${path}`))
  expect(existsSync(path)).toBe(false)
})

it('--report keeps the file of before until the batch has ended, and writes through a link', async () => {
  const batch = await createBatch()
  const path = join(batch.folder, 'reports', 'report.json')
  mkdirSync(dirname(path))
  writeFileSync(path, 'before')
  usageErrorOf(await batch.run(`--max-runs 0 --report ${path}`))
  expect(readFileSync(path, 'utf8')).toBe('before')
  outputOf(await batch.run(`--report ${path}`))
  expect(readdirSync(dirname(path))).toEqual(['report.json'])
  expect(reported(path).summary).toMatchObject({ created: 2 })
  const link = join(batch.folder, 'link.json')
  symlinkSync(path, link)
  outputOf(await batch.run(`--report ${link}`))
  expect(lstatSync(link).isSymbolicLink()).toBe(true)
  expect(reported(path).summary).toMatchObject({ created: 0 })
})

it.skipIf(process.platform !== 'linux')(
  '--report is written to a file of /dev/fd, as shells name a pipe',
  async () => {
    const batch = await createBatch()
    const file = openSync(join(batch.folder, 'pipe.json'), 'w')
    outputOf(await batch.run(`--report /dev/fd/${file}`))
    closeSync(file)
    expect(reported(join(batch.folder, 'pipe.json')).summary).toMatchObject({ created: 2 })
  },
)

it('--report replaces no file of the batch, and needs a path that can be written', async () => {
  const batch = await createBatch()
  const before = readFileSync(batch.manifest, 'utf8')
  const names = ['shots.json', 'shots.lock.json', 'icons/fox one.png', '..', 'shots.json/report.json']
  const link = join(batch.folder, 'link.json')
  symlinkSync(batch.manifest, link)
  for (const path of [link, ...names.map((name) => join(batch.folder, 'art', name))])
    usageErrorOf(await batch.run(`--report ${path}`))
  expect(readFileSync(batch.manifest, 'utf8')).toBe(before)
  expect(batch.service.requests).toEqual([])
})
