/** `rushes init`: the first manifest, and the document of a model server of this machine. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { type Fetch, HttpFailure } from '../../src/host/http.js'
import { createNetwork } from '../../src/host/undici.js'
import { whenOver } from '../support/after-file.js'
import { type RunOptions, runCli } from '../support/cli.js'
import { createManualClock } from '../support/clock.js'
import { createInstantEngine } from '../support/engines.js'
import { createComfyServer } from '../support/model-servers/comfyui.js'
import { createSdcppServer } from '../support/model-servers/sdcpp.js'
import { temporaryFolder } from '../support/temporary-folder.js'

/** Command lines on a machine with these servers, by the port that they usually have. */
function createMachine(ports: Readonly<Record<string, string>> = {}) {
  const [home, folder] = [temporaryFolder(), temporaryFolder()]
  const clock = createManualClock()
  const network = createNetwork({ env: {}, clock })
  whenOver(() => network.close())
  const fetch: Fetch = async (request) => {
    const there = ports[request.url.port]
    if (there === undefined && request.url.port !== '' && Number(request.url.port) < 32_000)
      throw new HttpFailure('refused', { sent: false, code: 'ECONNREFUSED' })
    const { pathname, search } = request.url
    return network.fetch({ ...request, url: there ? new URL(`${pathname}${search}`, there) : request.url })
  }
  const run = (argv: readonly string[], options: RunOptions = {}) =>
    clock.runUntil(runCli(argv, { home, clock, fetch, ...options }))
  return { run, folder, file: (name: string) => join(folder, name) }
}

it('writes a manifest that a batch with the previews finds and creates: an image, and a video of it', async () => {
  const { run, folder, file } = createMachine()
  const made = await run(['init', folder])
  expect(made).toMatchObject({ code: 0, stdout: '' })
  expect(made.stderr).toBe(
    `Created ${file('rushes.yaml')}: an image, and a video that begins with it.\n` +
      `Next, with free previews: \`rushes batch ${file('rushes.yaml')} --local\`. ` +
      'Look for a model server: `rushes doctor --models`.\n',
  )
  expect(readdirSync(folder)).toEqual(['rushes.yaml'])
  const plan = await run(['batch', file('rushes.yaml'), '--local', '--dry-run', '--json'])
  expect(plan.code).toBe(0)
  const steps = plan.stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
  expect(steps.map(({ name }) => name).filter((name) => name !== undefined)).toEqual(['fox', 'fox-runs'])

  const before = process.cwd()
  onTestFinished(() => process.chdir(before))
  process.chdir(folder)
  const parts = { engine: createInstantEngine() }
  const batch = await run(['batch', '--local'], parts)
  expect(batch).toMatchObject({ code: 0, stdout: 'assets/fox.png\nassets/fox-runs.png\n' })
  expect((await run(['batch', '--local', '--check'], parts)).code).toBe(0)
})

it('replaces no file', async () => {
  const { run, folder, file } = createMachine()
  writeFileSync(file('rushes.yaml'), 'runs: []\n')
  const { code, stderr } = await run(['init', folder])
  expect(code).toBe(2)
  expect(stderr).toContain(`${file('rushes.yaml')} already exists.`)
  expect(readFileSync(file('rushes.yaml'), 'utf8')).toBe('runs: []\n')
  expect(readdirSync(folder)).toEqual(['rushes.yaml'])
})

it('writes the document of a server that answers, which the next command draws with', async () => {
  const server = await createSdcppServer()
  const { run, folder, file } = createMachine({ 1234: server.url })
  const made = await run(['init', folder, '--json'])
  const next = `rushes config set local.models ${file('model.yaml')} && rushes batch ${file('rushes.yaml')} --local`
  expect(JSON.parse(made.stdout)).toEqual({ manifest: file('rushes.yaml'), model: file('model.yaml'), next })
  expect(parse(readFileSync(file('model.yaml'), 'utf8'))).toMatchObject({
    name: '127.0.0.1/v1-5',
    kind: 'image',
    engine: { type: 'sdcpp', url: 'http://127.0.0.1:1234', sizes: { '1:1': '512x512' } },
  })
  expect(await run(['config', 'set', 'local.models', file('model.yaml')])).toMatchObject({ code: 0 })
  const only = ['batch', file('rushes.yaml'), '--local', '--only', 'fox']
  expect(await run(only)).toMatchObject({ code: 0 })
  expect(server.jobs[0]?.fields.prompt).toBe('a red fox in fresh snow, soft morning light')
  expect(existsSync(file('assets/fox.png'))).toBe(true)
})

it('names the command for ComfyUI, whose workflow it cannot know', async () => {
  const server = await createComfyServer()
  const { run, folder } = createMachine({ 8188: server.url })
  const { stderr } = await run(['init', folder])
  expect(stderr).toMatch(/^ComfyUI \S+ answers at http:\/\/127\.0\.0\.1:8188\. Export a workflow/m)
  expect(readdirSync(folder)).toEqual(['rushes.yaml'])
})

test('a batch without a manifest names the command that writes one', async () => {
  const { run } = createMachine()
  const { code, stderr } = await run(['batch', '--local'])
  expect(code).toBe(2)
  expect(stderr).toContain('Missing manifest: this folder has no rushes.yaml.')
  expect(stderr).toContain('`rushes init`')
})
