/** action.yml: what it promises, and its steps, carried out with bash against this tree's program. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { BINARY, createPlace, type Environment, filesBelow, serve } from './support/binary.js'
import { ACTION, ACTION_FOLDER, createRunner, fakeNpm } from './support/github-action.js'
import { until } from './support/until.js'

const { inputs, outputs, runs } = ACTION
const SCRIPTS = runs.steps.flatMap(({ name, run }) => (run === undefined ? [] : [[name, run] as const]))
const expressionsOf = (value: unknown): string => JSON.stringify(value)

describe('action.yml', () => {
  it.each(Object.entries(inputs))('describes the input %s with a default, and uses it', (name, input) => {
    expect(name).toMatch(/^[a-z]+(-[a-z]+)*$/)
    expect(input.description).toMatch(/\S/)
    // The runner gives text to scripts, also for true and false.
    expect(typeof input.default).toBe('string')
    expect(expressionsOf(runs.steps)).toMatch(new RegExp(`inputs\\.${name}(?![a-z-])`))
  })

  it.each(Object.entries(outputs))('describes the output %s, which a step sets', (name, output) => {
    expect(name).toMatch(/^[a-z]+(-[a-z]+)*$/)
    expect(output.description).toMatch(/\S/)
    const sources = [...output.value.matchAll(/steps\.([\w-]+)\.outputs\.([\w-]+)/g)]
    expect(sources.length).toBeGreaterThan(0)
    for (const [, id, key] of sources) {
      const step = runs.steps.find((each) => each.id === id)
      const common = key === 'json' ? runs.steps.find((each) => each.id === 'prepare')?.run : ''
      expect(`${step?.run}${common}`).toContain(`${key}=`)
    }
  })

  it('contains every step whose output it uses', () => {
    const ids = runs.steps.flatMap(({ id }) => (id === undefined ? [] : [id]))
    for (const [, id] of expressionsOf(ACTION).matchAll(/steps\.([\w-]+)\./g)) expect(ids).toContain(id)
    expect(new Set(ids).size).toBe(ids.length)
  })

  it.each(SCRIPTS)('contains no expressions in the script of "%s", which is strict bash', (_, run) => {
    expect(run).toMatch(/^set -euo pipefail\n/)
    expect(run).not.toContain('${{')
  })

  it('runs scripts with bash, and pins other actions', () => {
    for (const { run, shell, uses } of runs.steps) {
      expect(shell).toBe(run === undefined ? undefined : 'bash')
      if (uses !== undefined) expect(uses).toMatch(/^actions\/[a-z/-]+@v\d+$/)
    }
  })

  it('gives the key only to the steps that plan and create runs', () => {
    const having = runs.steps.filter((step) => expressionsOf(step).includes('inputs.key'))
    expect(having.map(({ id }) => id)).toEqual(['plan', 'run'])
  })
})

const ONE = 'defaults: { kind: image }\nruns:\n  - { name: fox, prompt: a fox, output: assets/fox.png }\n'
const TWO = `${ONE}  - { name: hen, prompt: a hen, output: assets/hen.png }\n`

function createRepository(files: Readonly<Record<string, string>> = { 'rushes.yaml': ONE }) {
  const npm = fakeNpm(createPlace(), BINARY)
  const { folder } = npm.place
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  const runner = createRunner(npm.place)
  return {
    ...runner,
    runner,
    place: npm.place,
    arguments: npm.arguments,
    folder,
    has: (path: string) => existsSync(join(folder, path)),
    /** The checkout as it is without what the batch has written. */
    discard() {
      for (const name of filesBelow(folder)) if (!(name in files)) rmSync(join(folder, name))
    },
  }
}

const IMAGE_ENGINE = 'image=node make.cjs'
/** Two outputs for "two". Fails for a prompt with "bad", and waits for the file `go` when there is a file `slow`. */
const ENGINE = `
const { existsSync, readFileSync, writeFileSync } = require('node:fs')
const text = readFileSync(0, 'utf8')
if (text.includes('bad')) process.exit(3)
const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')
const names = text.includes('two') ? ['1', '2'] : ['1']
const end = () => names.map((name) => writeFileSync(process.env.RUSHES_OUTPUT_DIR + '/' + name + '.png', Buffer.concat([png, Buffer.from(name)])))
const wait = () => (existsSync('slow') && !existsSync('go') ? setTimeout(wait, 20) : end())
wait()
`

/** The service that a repository uses, in a folder of its own. */
async function startService() {
  const place = createPlace()
  writeFileSync(join(place.folder, 'make.cjs'), ENGINE)
  const { url, apiKey, folder, data } = await serve(place, ['--engine', IMAGE_ENGINE])
  return {
    apiKey,
    folder,
    data,
    inputs: { key: apiKey, 'base-url': url, models: 'image=rushes/preview-image', gallery: '' },
  }
}

const SAVES = 'Save the state folder'

describe.concurrent('with the local service', () => {
  it('--check and --dry-run change nothing, and the check fails', async () => {
    const repository = createRepository({ 'rushes.yaml': TWO })
    const planned = await repository.job({ 'dry-run': 'true', local: 'true' })
    expect(planned).toMatchObject({
      failed: false,
      outputs: { planned: '2', created: '0', 'up-to-date': '0', failed: '0', 'exit-code': '0', gallery: '' },
    })
    expect(planned.summary).toMatch(/\| hen \| create \|/)
    const checked = await repository.job({ check: 'true' })
    expect(checked).toMatchObject({
      failed: true,
      outputs: { planned: '2', created: '0', 'up-to-date': '0', 'exit-code': '10' },
    })
    expect(checked.log).toMatch(/^::error file=rushes\.yaml,line=3,title=fox::/m)
    expect(checked.log).toMatch(/^::error title=rushes batch%3A exit code 10::.*missing or out of date/m)
    expect(checked.ran).toEqual(['Read the inputs', 'Install rushes', 'Check'])
    expect(readdirSync(repository.folder)).toEqual(['rushes.yaml'])
    expect(repository.caches).toEqual([])
  })

  it('creates the runs of two steps with one program, and keeps separate state for each manifest', async () => {
    const second = 'runs: [{ name: owl, kind: image, prompt: an owl }]\n'
    const repository = createRepository({ 'rushes.yaml': ONE, 'more.yaml': second })
    const run = async (gallery: string) =>
      [
        await repository.job({ local: 'true', gallery }),
        await repository.step({ local: 'true', gallery: '', manifest: 'more.yaml' }),
      ] as const
    const [first, next] = await run('-page.html')
    expect(first.log).not.toMatch(/^::error/m)
    for (const each of [first, next])
      expect(each).toMatchObject({
        failed: false,
        outputs: {
          planned: '1',
          created: '1',
          'up-to-date': '0',
          failed: '0',
          estimate: '0',
          'exit-code': '0',
        },
      })
    expect(first.ran).toContain(SAVES)
    expect(repository.has('assets/fox.png')).toBe(true)
    expect(first.summary).toMatch(
      /### rushes\.yaml\n\n1 run: 1 created\. Estimate: 0 credits\.\n[\s\S]*\| fox \| create \|/,
    )
    expect(first.summary.match(/### /g)).toHaveLength(1)
    const report = readFileSync(first.outputs.json ?? '', 'utf8')
    expect(report).toMatch(/^\{"name":"fox",.*\n\{"summary":\{.*\n$/)
    expect(first.outputs.gallery).toBe('./-page.html')
    expect(repository.has('-page.html')).toBe(true)
    expect(repository.arguments().match(/^npm install/gm)).toHaveLength(1)
    expect(new Set(repository.caches).size).toBe(2)
    repository.discard()
    for (const each of await run('')) {
      expect(each.ran).toContain('Restore the state folder')
      expect(each.outputs).toMatchObject({ created: '0', 'up-to-date': '1', 'exit-code': '0' })
    }
    expect(repository.has('rushes.lock.json') && repository.has('more.lock.json')).toBe(true)
  })

  it('restores the state on another branch, but not in another workflow', async () => {
    const repository = createRepository({ 'rushes.yaml': ONE })
    const job = async (file: string, branch: string) => {
      const GITHUB_WORKFLOW_REF = `acme/site/.github/workflows/${file}@refs/heads/${branch}`
      const { outputs, log } = await repository.job({ local: 'true', gallery: '' }, { GITHUB_WORKFLOW_REF })
      repository.discard()
      return [outputs.created, log.includes('::notice title=rushes::The results of an earlier job')]
    }
    expect(await job('assets.yml', 'main')).toEqual(['1', false])
    expect(await job('nightly.yml', 'main')).toEqual(['1', false])
    expect(await job('assets.yml', 'next')).toEqual(['0', true])
  })

  it('uses the version of the project, or else of the action', async () => {
    const { version } = JSON.parse(readFileSync(join(ACTION_FOLDER, 'package.json'), 'utf8'))
    const repository = createRepository()
    await repository.job({ check: 'true' })
    const installs = () =>
      repository
        .arguments()
        .split('\n')
        .filter((line) => line.startsWith('npm install'))
    expect(installs()).toEqual([
      expect.stringMatching(new RegExp(` -- rushes@${version.replaceAll('.', '\\.')}$`)),
    ])
    await repository.job({ check: 'true', version: '0.0.7' })
    expect(installs()[1]).toMatch(/ rushes@0\.0\.7$/)
    const own = join(repository.folder, 'node_modules/.bin')
    mkdirSync(own, { recursive: true })
    writeFileSync(join(own, 'rushes'), '#!/bin/sh\necho "its own"\n', { mode: 0o755 })
    expect((await repository.job({ check: 'true' })).log).toMatch(/^its own\nits own\n/)
    expect(installs()).toHaveLength(2)
  })
})

describe.concurrent('with a service', () => {
  it('sets the outputs and keeps the other files when a row fails, without revealing the key', async () => {
    const service = await startService()
    const repository = createRepository({ 'rushes.yaml': TWO.replace('a hen', 'a bad hen') })
    const job = await repository.job(service.inputs)
    expect(job).toMatchObject({
      failed: true,
      outputs: { planned: '2', created: '1', 'up-to-date': '0', failed: '1', 'exit-code': '10' },
    })
    expect(job.ran).toContain(SAVES)
    expect(repository.caches).toEqual([expect.stringMatching(/^rushes-Linux-assets-\d+-\d+-1-1-\d+$/)])
    expect(job.log).toMatch(/^::error file=rushes\.yaml,line=4,title=hen::/m)
    expect(job.log).toMatch(/exit code 10::Exit code 10: the run failed/)
    // The runner takes these lines out of the log.
    expect(job.log).toContain(`::add-mask::${service.apiKey}\n`)
    const visible = job.log.replaceAll(/^::add-mask::.*\n/gm, '')
    for (const text of [visible, job.summary, JSON.stringify(job.outputs), repository.arguments()])
      expect(text).not.toContain(service.apiKey)
    for (const root of [repository.temp, repository.folder])
      for (const path of filesBelow(root))
        expect(readFileSync(join(root, path), 'latin1')).not.toContain(service.apiKey)
  })

  it('does not pay again for runs that were not committed', async () => {
    const service = await startService()
    const repository = createRepository({ 'rushes.yaml': ONE })
    expect((await repository.job(service.inputs)).outputs.created).toBe('1')
    repository.discard()
    const again = await repository.job({ ...service.inputs, key: '' })
    expect(again).toMatchObject({
      failed: false,
      outputs: { planned: '0', created: '0', 'up-to-date': '1', 'exit-code': '0' },
    })
    expect(again.log).toContain('::notice title=rushes::The results of an earlier job were not committed.')
    expect(repository.has('assets/fox.png') && repository.has('rushes.lock.json')).toBe(true)
    // Neither is it after a second job that was not committed.
    repository.discard()
    expect((await repository.job({ ...service.inputs, key: '' })).outputs['up-to-date']).toBe('1')
    // Committed: the next job begins from the lock file of the repository.
    const committed = await repository.job({ ...service.inputs, key: '' })
    expect(committed.log).not.toContain('::notice')
    expect(committed).toMatchObject({
      failed: false,
      outputs: { planned: '0', created: '0', 'up-to-date': '1', failed: '0', 'exit-code': '0' },
    })
  })

  it('keeps every output between jobs, but no file that the checkout has changed', async () => {
    const service = await startService()
    const manifest = `defaults: { kind: image }
runs:
  - { name: two, prompt: two, output: assets/two.png }
  - { name: hen, prompt: a hen, output: assets/hen.png }
  - { name: out, prompt: outside, output: ../outside.png }
`
    const repository = createRepository({ 'project/rushes.yaml': manifest })
    const inputs = { ...service.inputs, manifest: 'project/rushes.yaml', args: '--allow-outside' }
    expect((await repository.job(inputs)).outputs).toMatchObject({ created: '3', 'exit-code': '0' })
    const files = [
      'project/assets/two.png',
      'project/assets/two-2.png',
      'project/assets/hen.png',
      'outside.png',
    ]
    const bytes = files.map((file) => readFileSync(join(repository.folder, file)))
    repository.discard()
    // The outputs have expired.
    for (const path of filesBelow(service.data).filter((name) => name.endsWith('.png')))
      rmSync(join(service.data, path))
    writeFileSync(join(repository.folder, 'project/assets/hen.png'), 'by hand')
    const job = await repository.job(inputs)
    expect(job.log).toMatch(/^::warning title=rushes::assets\/hen.png was changed since an earlier job/m)
    expect(job.outputs['exit-code']).toBe('2')
    expect(readFileSync(join(repository.folder, 'project/assets/hen.png'), 'utf8')).toBe('by hand')
    for (const [at, file] of files.entries())
      if (!file.endsWith('hen.png')) expect(readFileSync(join(repository.folder, file))).toEqual(bytes[at])
  })

  it('keeps what two steps made of one manifest, even if the next job fails before its batch', async () => {
    const { apiKey, inputs } = await startService()
    const repository = createRepository({ 'rushes.yaml': TWO })
    const state = join(repository.place.home, 'my state')
    // The settings of the job are used where an input is empty.
    const env: Environment = {
      RUSHES_BASE_URL: inputs['base-url'],
      RUSHES_IMAGE_MODEL: 'rushes/preview-image',
      RUSHES_STATE_DIR: state,
    }
    const withKey = { ...env, RUSHES_API_KEY: apiKey }
    const only = (name: string) => ({ gallery: '', only: name })
    expect((await repository.job(only('fox'), withKey)).outputs.created).toBe('1')
    expect((await repository.step(only('hen'), withKey)).outputs.created).toBe('1')
    expect(filesBelow(state)).not.toEqual([])
    repository.discard()
    const refused = await repository.job({ gallery: '', 'max-runs': '0', args: '--force' }, withKey)
    expect(refused).toMatchObject({ failed: true, outputs: { planned: '2', 'exit-code': '2' } })
    repository.discard()
    const again = await repository.job({ gallery: '' }, env)
    expect(again.outputs).toMatchObject({ planned: '0', 'up-to-date': '2', 'exit-code': '0' })
  })

  it('ends the batch of a canceled job, and continues its run in the next one', async () => {
    const service = await startService()
    writeFileSync(join(service.folder, 'slow'), '')
    const repository = createRepository({ 'rushes.yaml': ONE })
    const cancelled = repository.job(service.inputs)
    await until('an accepted run', () => {
      const lock = join(repository.folder, 'rushes.lock.json')
      return existsSync(lock) && /"state": "accepted"/.test(readFileSync(lock, 'utf8')) ? true : undefined
    })
    repository.runner.running?.kill('SIGINT')
    const job = await cancelled
    expect(job).toMatchObject({ failed: true, outputs: { created: '0', 'exit-code': '130' } })
    expect(job.ran).toContain(SAVES)
    repository.discard()
    writeFileSync(join(service.folder, 'go'), '')
    const next = await repository.job(service.inputs)
    expect(next).toMatchObject({ failed: false, outputs: { planned: '0', 'exit-code': '0' } })
    expect(readFileSync(next.outputs.json ?? '', 'utf8')).toContain('"result":"downloaded"')
  })

  it('plans with the prices of the service and max-cost when it has the key', async () => {
    const service = await startService()
    const repository = createRepository({ 'rushes.yaml': TWO })
    const limited = { ...service.inputs, 'dry-run': 'true', 'max-cost': '2' }
    expect(await repository.job(limited)).toMatchObject({
      failed: false,
      outputs: { planned: '2', estimate: '2' },
    })
    expect(await repository.job({ ...limited, 'max-cost': '1' })).toMatchObject({ failed: true })
  })

  it('refuses too many runs, and an estimate above max-cost, before a run is created', async () => {
    const service = await startService()
    const profile = { currency: 'USD', prices: { 'rushes/preview-image': { run: 0.1 } } }
    const config = JSON.stringify({ profiles: { default: profile } })
    const repository = createRepository({ 'rushes.yaml': TWO, 'config/config.json': config })
    const env = { RUSHES_CONFIG_DIR: join(repository.folder, 'config') }
    for (const [limit, message] of [
      [{ 'max-runs': '1' }, 'This batch would create 2 runs'],
      [{ 'max-cost': '0.15' }, 'The estimate is 0.2 USD, but --max-cost allows 0.15 USD'],
    ] as const) {
      const job = await repository.job({ ...service.inputs, ...limit }, env)
      expect(job).toMatchObject({
        failed: true,
        outputs: { planned: '2', created: '0', estimate: '0.2', 'exit-code': '2' },
      })
      expect(job.log).toContain(`\n::error title=rushes batch%3A exit code 2::${message}`)
      expect(job.ran).not.toContain('Create what is missing or out of date')
      expect(job.summary).toMatch(/\| fox \| create \|/)
    }
    const limits = { 'max-runs': '1', 'max-cost': '0.15', only: 'fox\n', args: '--concurrency=1\n' }
    expect(await repository.job({ ...service.inputs, ...limits }, env)).toMatchObject({
      failed: false,
      outputs: { planned: '1', created: '1', estimate: '0.1' },
    })
    const unpriced = { ...service.inputs, 'dry-run': 'true', models: 'image=acme/still-1' }
    expect((await repository.job(unpriced, env)).outputs).toMatchObject({ estimate: '', 'exit-code': '0' })
  })
})

describe.concurrent('inputs are data', () => {
  const HOSTILE = `a "b" 'c' $(touch pwned) \`touch pwned\`; touch pwned #\n::error::pwned`

  /** Lines that the runner takes out of the log are not in it. */
  const visible = (log: string) => log.replaceAll(/^::add-mask::.*\n/gm, '')

  it('in the manifest, its name, its folder, its outputs and the key', async () => {
    const repository = createRepository({})
    const folder = HOSTILE.replaceAll('/', '')
    const manifest = `-${folder}.json`
    mkdirSync(join(repository.folder, folder))
    const row = { name: '::warning::x', kind: 'image', prompt: HOSTILE, output: '-assets/-fox.png' }
    writeFileSync(join(repository.folder, folder, manifest), JSON.stringify({ runs: [row] }))
    const names = { 'working-directory': folder, manifest, gallery: '-page.html' }
    const job = await repository.job({ ...names, local: 'true', key: HOSTILE })
    const gallery = `${folder}/-page.html`
    expect(job).toMatchObject({ failed: false, outputs: { created: '1', gallery } })
    expect(visible(job.log)).not.toMatch(/^\s*::(error|warning)/m)
    const written = ['-assets/-fox.png', `-${folder}.lock.json`].map((each) => join(folder, each))
    expect(written.every(repository.has)).toBe(true)
    expect(filesBelow(repository.folder).filter((path) => path.endsWith('pwned'))).toEqual([])
    for (const path of written) rmSync(join(repository.folder, path))
    const again = await repository.job({ ...names, local: 'true' })
    expect(again).toMatchObject({ failed: false, outputs: { created: '0', 'up-to-date': '1' } })
    expect(written.every(repository.has)).toBe(true)
    expect((await repository.job({ ...names, check: 'true' })).failed).toBe(false)
  })

  /** Only certain values of these are accepted, and the first that is not ends the job. */
  const CHECKED = ['check', 'dry-run', 'local', 'models', 'gallery', 'cache-key']
  const UNCHECKED = Object.keys(inputs).filter(
    (each) => ![...CHECKED, 'manifest', 'working-directory'].includes(each),
  )
  it.each<[name: string, hostile: readonly string[]]>([
    ...[...CHECKED, 'manifest'].map((each): [string, string[]] => [each, [each]]),
    ['all others together', UNCHECKED],
  ])('%s', async (name, hostile) => {
    const repository = createRepository()
    const job = await repository.job({
      'dry-run': 'true',
      local: 'true',
      ...Object.fromEntries(hostile.map((each) => [each, HOSTILE])),
    })
    expect(job.ran.includes('Plan')).toBe(!CHECKED.includes(name))
    expect(job.log).not.toContain('syntax error')
    expect(visible(job.log)).not.toMatch(/^::error::pwned/m)
    expect(repository.has('pwned') || existsSync(join(repository.temp, 'pwned'))).toBe(false)
  })

  it.each([
    ['check', 'yes', 'check is not true or false'],
    ['models', 'image', 'models has a word'],
    ['cache-key', 'a,b', 'cache-key has other characters'],
    ['gallery', '-', 'gallery is not a path'],
  ])('%s: %s is refused', async (input, value, message) => {
    const job = await createRepository().job({ [input]: value })
    expect(job).toMatchObject({ failed: true, ran: ['Read the inputs'] })
    expect(job.log).toContain(message)
  })
})
