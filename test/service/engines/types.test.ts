/** What holds for every type of engine in a folder of documents. */
import { chmodSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/host/clock.js'
import { openModelSet } from '../../../src/service/models/model-set.js'
import { jobOf, readEngineOf } from '../../support/model-servers/engine.js'
import { temporaryFolder } from '../../support/service.js'

const noFetch = () => Promise.reject(new Error('no network in this test'))
const preview = () => ({ render: noFetch })

test('a command does not get the key of another engine, under any name', async () => {
  const folder = temporaryFolder()
  const script = join(folder, 'my-model.sh')
  writeFileSync(script, '#!/bin/sh\nenv > "$RUSHES_OUTPUT_DIR/env.txt"\n')
  chmodSync(script, 0o755)
  const documents = [
    { name: 'acme/own', kind: 'image', engine: { type: 'command', command: script } },
    {
      name: 'acme/far',
      kind: 'image',
      engine: { type: 'images', url: 'http://127.0.0.1:1/v1', key_env: 'FAR_KEY' },
    },
    {
      name: 'acme/webui',
      kind: 'image',
      engine: { type: 'sdapi', url: 'http://127.0.0.1:1', key_env: 'WEBUI_KEY' },
    },
  ]
  for (const [index, document] of documents.entries())
    writeFileSync(join(folder, `${index}.yaml`), JSON.stringify(document))
  const env = {
    PATH: process.env.PATH,
    FAR_KEY: 'sk-far-0123456789',
    COPY: 'sk-far-0123456789',
    WEBUI_KEY: 'admin:webui-password',
    WEBUI_PASSWORD: 'webui-password',
    HF_TOKEN: 'hf-0123456789',
  }
  const set = await openModelSet({ path: folder, env })
  const engine = set.createEngine({ env, clock: systemClock, fetch: noFetch, urls: [], preview })
  const job = jobOf({ folder: mkdtempSync(join(folder, 'job-')), run: { id: 'run_1', model: 'acme/own' } })
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
  const { problems, create } = readEngineOf({ engine })
  expect(problems).toEqual([])
  const created = create({ env: {}, clock: systemClock, fetch: noFetch, urls: [], preview })
  expect(created.limitMs?.('acme/model')).toBe(limitMs)
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
