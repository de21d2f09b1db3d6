/** `rushes batch --check` and `--dry-run`: what is said of every state a row can be in, and that nothing is touched. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Fetch, HttpFailure } from '../../src/host/http.js'
import { filesBelow } from '../support/binary.js'
import { createCliService, runCli } from '../support/cli.js'
import { temporaryFolder } from '../support/service.js'

const MANIFEST = `models: { image: rushes/preview-image, video: rushes/preview-video }
defaults: { kind: image }
runs:
  - name: fox
    prompt: a fox
  - name: hen
    prompt: a hen
    output: icons/hen.png
`

async function createPlan() {
  const service = await createCliService()
  const folder = temporaryFolder()
  const manifest = join(folder, 'shots.yaml')
  const write = (text: string) => writeFileSync(manifest, text)
  write(MANIFEST)
  /** Without address, key or network: as in a CI job that may not spend anything. */
  const bare = (...words: string[]) => runCli(['batch', manifest, ...words], { home: service.home })
  return {
    service,
    folder,
    write,
    bare,
    run: (...words: string[]) => service.run(['batch', manifest, ...words]),
    losing: (...words: string[]) => {
      const fetch: Fetch = async (request) => {
        if (request.method !== 'POST') return service.fetch(request)
        throw new HttpFailure('read ECONNRESET', { sent: true, code: 'ECONNRESET' })
      }
      return service.run(['batch', manifest, ...words], { fetch })
    },
    path: (name: string) => join(folder, name),
    all: () => Object.fromEntries(filesBelow(folder).map((name) => [name, readFileSync(join(folder, name))])),
  }
}

describe('--check', () => {
  it('is exit 10 while anything is missing, and 0 when all is there; it needs no key and changes nothing', async () => {
    const { run, bare, all, service } = await createPlan()
    expect(await bare('--check')).toMatchObject({
      code: 10,
      stdout: 'create\tfox\tfox.{ext}\tmissing\ncreate\then\ticons/hen.png\tmissing\n',
      stderr: '2 runs: 2 to create; at least 4 requests\n',
    })
    expect(existsSync(join(service.home, 'state'))).toBe(false)
    expect((await run()).code).toBe(0)
    const before = all()
    service.requests.length = 0
    expect(await bare('--check')).toMatchObject({
      code: 0,
      stdout: 'up_to_date\tfox\tfox.png\t\nup_to_date\then\ticons/hen.png\t\n',
      stderr: '2 runs: 2 up to date\n',
    })
    expect(all()).toEqual(before)
    expect(service.requests).toEqual([])
  })

  it.each<[string, (place: Awaited<ReturnType<typeof createPlan>>) => unknown, RegExp]>([
    ['another prompt', ({ write }) => write(MANIFEST.replace('a fox', 'a red fox')), /^create\tfox\t/m],
    [
      'another parameter',
      ({ write }) => write(MANIFEST.replace('a fox', 'a fox\n    quality: high')),
      /^create\tfox\t/m,
    ],
    [
      'another model',
      ({ write }) => write(MANIFEST.replace('preview-image', 'other')),
      /^create\tfox\t.*\ncreate\then\t/m,
    ],
    [
      'a further row',
      ({ write }) => write(`${MANIFEST}  - { name: cow, prompt: a cow }\n`),
      /^create\tcow\t/m,
    ],
    ['a file that is gone', ({ path }) => rmSync(path('fox.png')), /^download\tfox\t/m],
    ['a file that was changed', ({ path }) => writeFileSync(path('fox.png'), 'mine'), /^conflict\tfox\t/m],
    [
      'a lock file that is gone',
      ({ path }) => rmSync(path('shots.lock.json')),
      /^conflict\tfox\t.*\nconflict\then\t/m,
    ],
  ])('notices %s', async (_, change, says) => {
    const place = await createPlan()
    await place.run()
    change(place)
    const { code, stdout } = await place.bare('--check')
    expect(code).toBe(10)
    expect(stdout).toMatch(says)
  })

  it.each<[string, (text: string) => string]>([
    [
      'rows in another order',
      () => MANIFEST.replace(/( {2}- name: fox[\s\S]*?)( {2}- name: hen[\s\S]*)/, '$2$1'),
    ],
    ['comments and quotes', (text) => `# shots\n${text.replace('a fox', '"a fox" # red')}`],
  ])('does not mind %s', async (_, change) => {
    const place = await createPlan()
    await place.run()
    place.write(change(MANIFEST))
    expect((await place.bare('--check')).code).toBe(0)
  })

  it('counts a row whose create nobody knows the end of as missing', async () => {
    const place = await createPlan()
    await place.losing('--only', 'fox')
    const { code, stdout, stderr } = await place.bare('--check')
    expect(code).toBe(10)
    expect(stdout).toMatch(/^unconfirmed\tfox\tfox\.\{ext\}\t~[0-9a-f]{4,}$/m)
    expect(stderr).toContain('1 unconfirmed')
  })

  it('looks only at what is selected', async () => {
    const place = await createPlan()
    await place.run('--only', 'fox')
    expect((await place.bare('--check', '--only', 'fox')).code).toBe(0)
    expect((await place.bare('--check', '--only', 'icons/*')).code).toBe(10)
    expect((await place.bare('--check')).code).toBe(10)
  })

  it('is an object a row, and a summary', async () => {
    const place = await createPlan()
    await place.run('--only', 'fox')
    const lines = (await place.bare('--check', '--json')).stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines).toEqual([
      expect.objectContaining({ name: 'fox', action: 'up_to_date', reason: null, file: 'fox.png', line: 4 }),
      expect.objectContaining({
        name: 'hen',
        action: 'create',
        reason: 'missing',
        file: 'icons/hen.png',
        line: 6,
      }),
      {
        summary: {
          total: 2,
          up_to_date: 1,
          create: 1,
          download: 0,
          unconfirmed: 0,
          conflict: 0,
          blocked: 0,
          skip: 0,
          requests: 2,
          least_ms: null,
          expected_ms: null,
          models: { 'rushes/preview-image': 1 },
          not_waited_for: [],
        },
      },
    ])
  })

  it('is exit 2 for a manifest that is wrong, every error with its place', async () => {
    const place = await createPlan()
    place.write(
      MANIFEST.replace('a fox', 'a fox\n    qualty: high').replace('a hen', 'a hen\n    quality: hihg'),
    )
    const { code, stdout, stderr } = await place.bare('--check')
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/shots\.yaml:6:5: .*qualty.*quality/)
    expect(stderr).toMatch(/shots\.yaml:9:14: .*hihg.*high/)
  })
})

describe('--dry-run', () => {
  it('says what would be done, how many requests that is, and what the limit takes', async () => {
    const place = await createPlan()
    const rows = Array.from({ length: 30 }, (_, at) => `  - { name: cow-${at}, prompt: cow ${at} }\n`).join(
      '',
    )
    place.write(MANIFEST + rows)
    const { code, stderr } = await place.bare('--dry-run')
    expect(code).toBe(0)
    expect(stderr).toBe(
      '32 runs: 32 to create; at least 64 requests, at least 30 s because of the rate limit\n',
    )
    expect(readdirSync(place.folder)).toEqual(['shots.yaml'])
    expect(existsSync(join(place.service.home, 'state'))).toBe(false)
  })

  it('expects what runs of the model took before', async () => {
    const place = await createPlan()
    await place.service.run(['run', 'image', 'a cow', '-n', '3'])
    const said = async (...words: string[]) => (await place.bare('--dry-run', ...words)).stderr
    const [, seconds] = /at least 4 requests, about (\d+) s\n$/.exec(await said()) ?? []
    expect(Number(seconds)).toBeLessThan(10)
    // Another address is another service.
    expect(await said('--base-url', 'https://elsewhere.example')).toBe(
      '2 runs: 2 to create; at least 4 requests\n',
    )
    const summary = JSON.parse(
      (await place.bare('--dry-run', '--json')).stdout.trimEnd().split('\n').at(-1) ?? '',
    )
    expect(summary.summary).toMatchObject({ least_ms: 0, expected_ms: expect.any(Number) })
  })

  it('with --only prints the rows that are selected, and counts the others', async () => {
    const place = await createPlan()
    expect(await place.bare('--dry-run', '--only', 'hen')).toMatchObject({
      stdout: 'create\then\ticons/hen.png\tmissing\n',
      stderr: '2 runs: 1 to create, 1 skipped; at least 2 requests\n',
    })
    const json = (await place.bare('--check', '--only', 'hen', '--json')).stdout.trimEnd().split('\n')
    expect(json.map((line) => JSON.parse(line).name)).toEqual(['hen', undefined])
    expect(JSON.parse(json[1] ?? '').summary).toMatchObject({ total: 2, create: 1, skip: 1 })
  })

  it('prints the plan, and is exit 2 where a model is not set', async () => {
    const place = await createPlan()
    place.write(MANIFEST.replace(/^models.*\n/, ''))
    expect(await place.bare('--dry-run')).toMatchObject({
      code: 2,
      stdout: 'create\tfox\tfox.{ext}\tmissing\ncreate\then\ticons/hen.png\tmissing\n',
      stderr: expect.stringContaining('error: Not set: image model.'),
    })
  })

  it('is exit 2 for what could not be begun', async () => {
    const place = await createPlan()
    expect(await place.bare('--dry-run', '--max-runs', '1')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('would create 2 runs, but --max-runs allows 1'),
    })
    writeFileSync(place.path('fox.png'), 'mine')
    expect(await place.bare('--dry-run')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('fox.png (fox, line 4)'),
    })
    expect((await place.bare('--dry-run', '--overwrite')).code).toBe(0)
  })

  it('would make anew with --force what is current, and send again what is unconfirmed when told to', async () => {
    const place = await createPlan()
    await place.run()
    expect((await place.bare('--dry-run', '--force')).stderr).toContain('2 to create')
    place.write(MANIFEST.replace('a fox', 'a red fox'))
    await place.losing()
    expect((await place.bare('--dry-run')).stderr).toContain('1 up to date, 1 unconfirmed')
    expect((await place.bare('--dry-run', '--resubmit-unconfirmed')).stderr).toContain(
      '1 up to date, 1 to create',
    )
  })
})
