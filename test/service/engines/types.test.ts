/** What holds for every type of engine in a folder of documents. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/host/clock.js'
import { ENGINE_TYPES } from '../../../src/service/models/engine-table.js'
import {
  createCliService,
  createManualClock,
  jobOf,
  modelsFile,
  openModels,
  readEngineOf,
} from '../../support/index.js'
import { createImagesServer } from '../../support/model-servers/images.js'

test('the docs describe each type of engine', () => {
  const read = (page: string) => readFileSync(new URL(`../../../docs/${page}`, import.meta.url), 'utf8')
  const [, listed = ''] = /^ {2}type: images +# (.*)$/m.exec(read('engines.md')) ?? []
  expect(listed.split(' | ').sort()).toEqual(Object.keys(ENGINE_TYPES).sort())
  const headings = [...read('engine-types.md').matchAll(/^## (.*)$/gm)].flatMap(([, heading = '']) =>
    heading.split(', '),
  )
  expect(Object.keys(ENGINE_TYPES).filter((type) => !headings.includes(type))).toEqual([])
})

test('a command does not get the key of another engine, under any name', async () => {
  const of = (name: string, engine: object) => ({ name: `acme/${name}`, kind: 'image', engine })
  const path = modelsFile(
    of('own', { type: 'command', command: 'env > "$RUSHES_OUTPUT_DIR/env.txt"' }),
    of('far', { type: 'images', url: 'http://127.0.0.1:1/v1', key_env: 'FAR_KEY' }),
    of('webui', { type: 'sdapi', url: 'http://127.0.0.1:1', key_env: 'WEBUI_KEY' }),
  )
  const env = {
    PATH: process.env.PATH,
    FAR_KEY: 'sk-far-0123456789',
    COPY: 'sk-far-0123456789',
    WEBUI_KEY: 'admin:webui-password',
    WEBUI_PASSWORD: 'webui-password',
    HF_TOKEN: 'hf-0123456789',
  }
  const { engine } = await openModels({ path }, { clock: systemClock, env })
  const job = jobOf({ run: { id: 'run_1', model: 'acme/own' } })
  await engine.render(job)
  const variables = readFileSync(join(job.folder, 'env.txt'), 'utf8')
  expect(variables).toContain('HF_TOKEN=hf-0123456789')
  expect(variables).toContain('RUSHES_MODEL=acme/own')
  expect(variables).not.toMatch(/sk-far|webui-password/)
})

test.each([
  [{ type: 'command', command: 'true', timeout: '45m' }, 2_700_000],
  [{ type: 'images', url: 'http://127.0.0.1:1/v1', timeout: '0' }, Number.POSITIVE_INFINITY],
  [{ type: 'sdapi', url: 'http://127.0.0.1:1' }, undefined],
])('timeout is the limit of one run: %j', (engine, limitMs) => {
  const { problems, limitMs: found } = readEngineOf({ engine })
  expect([problems, found]).toEqual([[], limitMs])
})

test.each([
  [
    { type: 'command', command: 'true', timeout: 'soon' },
    'timeout: timeout: "soon" is not a valid duration.',
  ],
  [{ type: 'command' }, 'command: is missing'],
  [{ type: 'preview', timeout: '1m' }, 'timeout: "timeout" is not a key of an engine of type preview.'],
])('reports %j', (engine, problem) => {
  expect(readEngineOf({ engine }).problems).toEqual([expect.stringContaining(problem)])
})

test('the first command of the docs draws another picture for each run, with a seed that draws the same picture again', async () => {
  const server = await createImagesServer('sdcpp')
  const clock = createManualClock()
  const models = await openModels({ engines: { image: `images:${server.url}/v1` } }, { clock })
  const { run, home } = await createCliService({ ...models, clock, hasList: true })
  const made = await run(`run image "a fox" -n 3 --json -o ${join(home, 'fox.png')} --sidecar`)
  expect(made).toMatchObject({ code: 0 })
  const runs = made.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const seeds: number[] = runs.map(({ service: { input } }) => input.seed)
  expect(seeds.every((seed) => Number.isInteger(seed) && seed >= 0)).toBe(true)
  expect(new Set(runs.map(({ files: [{ sha256 }] }) => sha256)).size).toBe(3)
  const prompts = server.requests.flatMap(({ method, json }) => (method === 'POST' ? [json().prompt] : []))
  expect(new Set(prompts)).toEqual(
    new Set(seeds.map((seed) => `a fox<sd_cpp_extra_args>{"seed":${seed}}</sd_cpp_extra_args>`)),
  )
  const [{ id, files }] = runs
  expect(JSON.parse(readFileSync(`${files[0].path}.json`, 'utf8')).input.seed).toBe(seeds[0])
  expect((await run(`show ${id}`)).stdout).toContain(`seed\t${seeds[0]}`)
  const again = await run(`run image "a fox" --seed ${seeds[0]} --json -o ${join(home, 'again.png')}`)
  expect(JSON.parse(again.stdout).files[0].sha256).toBe(files[0].sha256)
})
