/** `rushes doctor --models`: one line for the server of each model, without a run and without a key. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Fetch, HttpFailure } from '../../src/host/http.js'
import { createNetwork } from '../../src/host/undici.js'
import { IMAGE_WORKFLOW } from '../service/engines/comfyui-workflows.js'
import { whenOver } from '../support/after-file.js'
import { runCli } from '../support/cli.js'
import { createManualClock } from '../support/clock.js'
import { createHostedApis } from '../support/hosted-apis.js'
import { createComfyServer } from '../support/model-servers/comfyui.js'
import { createImagesServer } from '../support/model-servers/images.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { until } from '../support/until.js'

const KEY = 'omni-secret-key'

async function doctor(folder: string, clock = createManualClock()) {
  const network = createNetwork({ env: {}, clock })
  whenOver(() => network.close())
  const options = { clock, fetch: network.fetch, env: { OMNI_KEY: KEY } }
  return await clock.runUntil(runCli(['doctor', '--models', folder], options))
}

const documentOf = (name: string, engine: object): string =>
  JSON.stringify({ name, kind: 'image', engine: { type: 'images', ...engine } })

test('names each model with its server, and fails when one is missing', async () => {
  const servers = await Promise.all([
    createImagesServer('sdcpp'),
    createImagesServer('omni'),
    createImagesServer('localai'),
  ])
  const [sdcpp = '', omni = '', localai = ''] = servers.map(({ url }) => `${url}/v1`)
  const folder = temporaryFolder()
  const write = (name: string, engine: object) =>
    writeFileSync(join(folder, `${name}.yaml`), documentOf(`acme/${name}`, engine))
  write('a', { url: sdcpp })
  write('b', { url: omni, key_env: 'OMNI_KEY', model: 'Qwen/Qwen-Image' })
  const fine = await doctor(folder)
  expect(fine).toMatchObject({ code: 0, stderr: '' })
  expect(fine.stdout.replaceAll(/ +/g, ' ')).toBe(
    [
      `ok model acme/a (images at ${sdcpp}): models sd-cpp-local`,
      `ok model acme/b (images at ${omni}): models Qwen/Qwen-Image`,
      'ok model rushes/preview-video (preview)',
      '',
    ].join('\n'),
  )
  write('c', { url: localai, model: 'flux' })
  await servers[0]?.close()
  const broken = await doctor(folder)
  expect(broken.code).toBe(9)
  expect(broken.stdout).toContain(
    `acme/a (images at ${sdcpp}): The connection to the model's server failed: the connection was refused.`,
  )
  expect(broken.stdout).toMatch(/^warning +model +acme\/c .*: The server does not list the model "flux"\./m)
  expect(fine.stdout + broken.stdout).not.toContain(KEY)
  expect(servers.flatMap(({ requests }) => requests).filter(({ method }) => method !== 'GET')).toEqual([])
})

test('names the account that pays for a hosted model, and its balance', async () => {
  const folder = temporaryFolder()
  const document = (name: string, more: object) =>
    writeFileSync(
      join(folder, `${name}.yaml`),
      JSON.stringify({ name: `acme/${name}`, kind: 'image', input: { image_urls: false }, ...more }),
    )
  const engine = { type: 'fal', model: 'fal-ai/flux/dev' }
  document('a', { engine, cost: { run: 0.025, currency: 'USD' } })
  document('b', { engine })
  const body = { credits: { current_balance: 24.5, currency: 'USD' } }
  const { fetch, routes } = createHostedApis(['https://api.fal.ai/v1/account/billing', { status: 200, body }])
  const check = () => runCli(['doctor', '--models', folder], { fetch, env: { FAL_KEY: KEY } })
  const { code, stdout } = await check()
  expect(code).toBe(0)
  expect(stdout.replaceAll(/ +/g, ' ')).toBe(
    [
      'ok model acme/a (fal at https://queue.fal.run): balance 24.5 USD; paid by the account of FAL_KEY, 0.025 USD for a run',
      'ok model acme/b (fal at https://queue.fal.run): balance 24.5 USD; paid by the account of FAL_KEY, no cost in the model file',
      'ok model rushes/preview-video (preview)',
      '',
    ].join('\n'),
  )
  routes.splice(0, 1, ['https://api.fal.ai/', { status: 401 }])
  const refused = await check()
  expect(refused.code).toBe(9)
  expect(refused.stdout).toContain('acme/a (fal at https://queue.fal.run): fal refused the key (401).')
  expect(stdout + refused.stdout + refused.stderr).not.toContain(KEY)
})

test('documents with a problem are reported with their lines', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'a.yaml'), 'name: acme/a\nkind: image\nengine:\n  type: images\n')
  const { code, stdout } = await doctor(folder)
  expect(code).toBe(2)
  expect(stdout).toMatch(/a\.yaml:3:1: engine: url is missing/)
})

test('a server that renders for others and answers nothing is busy, one that answers 503 is loading: no failure', async () => {
  const [sdcpp, kobold] = await Promise.all([createImagesServer('sdcpp'), createImagesServer('kobold')])
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'a.yaml'), documentOf('acme/a', { url: `${sdcpp.url}/v1` }))
  writeFileSync(join(folder, 'b.yaml'), documentOf('acme/b', { type: 'sdapi', url: kobold.url }))
  kobold.fault('GET /sdapi/v1/sd-models', { status: 503, body: { detail: 'Server is busy' } })
  // Each request holds one of the eight threads of the server.
  sdcpp.fault('POST', 'hang', 8)
  const leaving = new AbortController()
  const drawings = Array.from({ length: 8 }, () =>
    fetch(`${sdcpp.url}/v1/images/generations`, { method: 'POST', body: '{}', signal: leaving.signal }),
  )
  const left = Promise.allSettled(drawings)
  await until('all threads are busy', () => sdcpp.count('POST') === 8)
  const clock = createManualClock()
  const asking = doctor(folder, clock)
  await until('the server has the question', () => sdcpp.count('GET') === 1)
  await clock.advance(15_000)
  const { code, stdout } = await asking
  leaving.abort()
  await left
  expect(stdout.replaceAll(/ +/g, ' ')).toContain(
    `warning model acme/a (images at ${sdcpp.url}/v1): busy? It accepts connections, but sent no response for 15 s`,
  )
  expect(stdout).toMatch(/warning +model +acme\/b .*: The model's server answered 503: Server is busy/)
  expect(code).toBe(0)
})

test('a workflow without slots is a line with the slots that were found in it', async () => {
  const server = await createComfyServer()
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'flow.json'), JSON.stringify(IMAGE_WORKFLOW))
  writeFileSync(
    join(folder, 'a.yaml'),
    JSON.stringify({
      name: 'acme/a',
      kind: 'image',
      engine: { type: 'comfyui', url: server.url, workflow: 'flow.json' },
    }),
  )
  const { code, stdout } = await doctor(folder)
  expect(stdout).toMatch(
    /^ok +workflow +acme\/a: Slots found in the workflow: \{ prompt: 6\.inputs\.text, .*steps: 3\.inputs\.steps/m,
  )
  expect(code).toBe(0)
})

test('a size that servers would round is a warning', async () => {
  const server = await createImagesServer('localai')
  const folder = temporaryFolder()
  const engine = { url: `${server.url}/v1`, sizes: { '1:1': '500x500' } }
  writeFileSync(join(folder, 'a.yaml'), documentOf('acme/a', engine))
  const { code, stdout } = await doctor(folder)
  expect(stdout).toMatch(
    /warning +models +.*a\.yaml:1:\d+: engine\.sizes: 1:1 is 500x500: servers round sides/,
  )
  expect(code).toBe(0)
})

test('without a document, finds the servers on the usual ports of this machine, each with a ready command', async () => {
  const [sdcpp, comfyui, kobold] = await Promise.all([
    createImagesServer('sdcpp'),
    createComfyServer(),
    createImagesServer('kobold'),
  ])
  const ports: Readonly<Record<string, string>> = { 1234: sdcpp.url, 8188: comfyui.url, 5001: kobold.url }
  const clock = createManualClock()
  const network = createNetwork({ env: {}, clock })
  whenOver(() => network.close())
  const asked: string[] = []
  const fetch: Fetch = async (request) => {
    asked.push(request.url.host)
    const there = ports[request.url.port]
    if (there === undefined) throw new HttpFailure('refused', { sent: false, code: 'ECONNREFUSED' })
    return network.fetch({ ...request, url: new URL(request.url.pathname, there) })
  }
  const look = () => clock.runUntil(runCli(['doctor', '--models'], { clock, fetch }))
  const found = await look()
  expect(found.code).toBe(0)
  expect(found.stdout.replaceAll(/ +/g, ' ').split('\n')).toEqual([
    'ok server stable-diffusion.cpp at http://127.0.0.1:1234/v1: sd-cpp-local',
    ' rushes run image --local --engine images:http://127.0.0.1:1234/v1 "a red fox"',
    expect.stringMatching(/^ok server ComfyUI \S+ at http:\/\/127\.0\.0\.1:8188$/),
    ` rushes run image --local --engine 'comfyui:http://127.0.0.1:8188#workflow.json' "a red fox"`,
    'ok server sdapi at http://127.0.0.1:5001: koboldcpp',
    ' rushes run image --local --engine sdapi:http://127.0.0.1:5001 "a red fox"',
    '',
  ])
  const usual = ['1234', '8080', '8000', '30000', '8188', '7860', '5001', '5000']
  expect(new Set(asked)).toEqual(new Set(usual.map((port) => `127.0.0.1:${port}`)))

  await Promise.all([sdcpp.close(), kobold.close()])
  comfyui.fault('GET /system_stats', 'hang')
  const asking = look()
  await until('the server has the question', () => comfyui.count('GET /system_stats') === 2)
  await clock.advance(500)
  const nothing = await asking
  expect(nothing).toMatchObject({ code: 0 })
  expect(nothing.stdout).toMatch(
    /^warning +server +no model server answers on 127\.0\.0\.1 at the ports 1234, 8080/,
  )
})
