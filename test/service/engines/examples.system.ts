/** The scripts in docs/engines.md do what it says, against small fakes of the hosts that they talk to. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/host/clock.js'
import { createCommandEngine } from '../../../src/service/engines/command.js'
import { ONE_PIXEL_PNG } from '../../support/engines.js'
import { temporaryFolder } from '../../support/service.js'

const DOCS = readFileSync(new URL('../../../docs/engines.md', import.meta.url), 'utf8')
const has = (...commands: string[]) =>
  commands.every((command) => spawnSync('sh', ['-c', `command -v ${command}`]).status === 0)

/** A script of the docs by the name in its second line, as a file. */
function scriptOf(name: string): string {
  const [, text] = new RegExp(`^\`\`\`\\w+\\n(#!.*\\n# ${name}\\b[\\s\\S]*?)^\`\`\`$`, 'm').exec(DOCS) ?? []
  const path = join(temporaryFolder(), name)
  writeFileSync(path, text ?? '')
  chmodSync(path, 0o755)
  return path
}

interface Asked {
  readonly method: string
  readonly url: string
  readonly authorization: string | undefined
  readonly body: string
}
type Reply = readonly [status: number, body: string | Uint8Array]

async function createHost(answer: (asked: Asked) => Reply) {
  const asked: Asked[] = []
  const server = createServer(async (request, response) => {
    const one = { ...headOf(request), body: await textOf(request) }
    asked.push(one)
    const [status, body] = answer(one)
    response.writeHead(status).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const headOf = ({ method = '', url = '', headers }: IncomingMessage) => ({
  method,
  url,
  authorization: headers.authorization,
})

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += chunk
  return text
}

const PROMPT = 'a "fox"; $(rm -rf .) \\n \'quoted\' é'

function rendered(command: string, env: Readonly<Record<string, string>>) {
  const folder = mkdtempSync(join(temporaryFolder(), 'run-'))
  const engine = createCommandEngine({
    command,
    env: { PATH: process.env.PATH, ...env },
    clock: systemClock,
  })
  const files = engine.render({
    kind: 'image',
    input: { prompt: PROMPT, aspect_ratio: '1:1', quality: 'high' },
    folder,
    references: [],
    signal: new AbortController().signal,
  })
  return { folder, files }
}

test.runIf(has('curl', 'jq', 'base64'))('an images endpoint, by curl and jq', async () => {
  const host = await createHost(() => [
    200,
    JSON.stringify({ data: [{ b64_json: ONE_PIXEL_PNG.toString('base64') }] }),
  ])
  const env = { IMAGES_URL: host.url, IMAGES_KEY: 'sk-1', IMAGES_MODEL: 'still-1' }
  const { folder, files } = rendered(scriptOf('still.sh'), env)
  expect(await files).toEqual([{ name: 'image.png', contentType: 'image/png' }])
  expect(readFileSync(join(folder, 'image.png'))).toEqual(ONE_PIXEL_PNG)
  expect(host.asked).toEqual([
    { method: 'POST', url: '/v1/images/generations', authorization: 'Bearer sk-1', body: expect.any(String) },
  ])
  expect(JSON.parse(host.asked[0]?.body ?? '')).toEqual({
    model: 'still-1',
    prompt: PROMPT,
    n: 1,
    response_format: 'b64_json',
    size: '2048x2048',
  })
})

test.runIf(has('curl', 'jq', 'base64'))('what the endpoint refuses is the run’s failure', async () => {
  const host = await createHost(() => [400, JSON.stringify({ error: { message: 'not this prompt' } })])
  const { files } = rendered(scriptOf('still.sh'), {
    IMAGES_URL: host.url,
    IMAGES_KEY: 'sk-1',
    IMAGES_MODEL: 'x',
  })
  await expect(files).rejects.toThrow(/exit code 1: [\s\S]*not this prompt$/)
})

test.runIf(has('curl', 'jq'))('ComfyUI, by curl and jq', async () => {
  let looks = 0
  const done = {
    p1: { outputs: { 9: { images: [{ filename: 'a b_1.png', subfolder: 'x', type: 'output' }] } } },
  }
  const host = await createHost(({ url }) => {
    if (url === '/prompt') return [200, JSON.stringify({ prompt_id: 'p1' })]
    if (url === '/history/p1') return [200, JSON.stringify(looks++ === 0 ? {} : done)]
    return [url === '/view?filename=a%20b_1.png&subfolder=x&type=output' ? 200 : 404, ONE_PIXEL_PNG]
  })
  const place = temporaryFolder()
  writeFileSync(join(place, 'workflow.json'), JSON.stringify({ 6: { inputs: { text: '' } }, 9: {} }))
  const { files } = rendered(`cd '${place}' && ${scriptOf('comfy.sh')}`, { COMFY_URL: host.url })
  expect(await files).toEqual([{ name: 'a b_1.png', contentType: 'image/png' }])
  expect(JSON.parse(host.asked[0]?.body ?? '').prompt[6].inputs.text).toBe(PROMPT)
})

test.runIf(has('python3'))('the Python script is Python', () => {
  const script = /^```python\n([\s\S]*?)^```$/m.exec(DOCS)?.[1] ?? ''
  const { status, stderr } = spawnSync('python3', ['-c', 'import ast, sys; ast.parse(sys.stdin.read())'], {
    input: script,
  })
  expect([status, stderr.toString(), script.length > 200]).toEqual([0, '', true])
})
