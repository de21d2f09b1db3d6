/** What holds for every type of engine in a folder of documents. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/host/clock.js'
import { ENGINE_TYPES } from '../../../src/service/models/engine-table.js'
import { jobOf, modelsFile, openModels } from '../../support/model-servers/engine.js'

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
