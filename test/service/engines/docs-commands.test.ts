/** The first commands of docs/engines.md, each against a server that speaks the dialect it names. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { defaultsOf } from '../../../src/protocol/price.js'
import { createManualClock, temporaryFolder } from '../../support/index.js'
import { createComfyServer } from '../../support/model-servers/comfyui.js'
import { jobOf, openModels } from '../../support/model-servers/engine.js'
import { createImagesServer } from '../../support/model-servers/images.js'
import { createSdcppServer } from '../../support/model-servers/sdcpp.js'
import { createVideosServer } from '../../support/model-servers/videos.js'
import { IMAGE_WORKFLOW } from './comfyui-workflows.js'

const DOCS = readFileSync(new URL('../../../docs/engines.md', import.meta.url), 'utf8')
const COMMANDS = [
  ...DOCS.matchAll(
    /^rushes run (image|video) --local --engine ((?:images|sdcpp|comfyui|videos|sdapi):\S+) ".*" +# (.*)$/gm,
  ),
].map(([, kind = '', word = '', server = '']) => ({ kind: kind as 'image' | 'video', word, server }))

const SERVERS: Readonly<Record<string, () => Promise<{ readonly url: string }>>> = {
  'stable-diffusion.cpp': () => createSdcppServer(),
  ComfyUI: () => createComfyServer(),
  LocalAI: () => createImagesServer('localai'),
  'vLLM-Omni or SGLang': () => createVideosServer(),
  'Forge or SD.Next': () => createImagesServer('forge'),
}

test('the page begins with a command for each server', () => {
  expect(COMMANDS.map(({ server }) => server)).toEqual(Object.keys(SERVERS))
})

test.each(COMMANDS)('$server: $word', async ({ kind, word, server }) => {
  const { url } = (await SERVERS[server]?.()) ?? { url: '' }
  const workflow = join(temporaryFolder(), 'workflow.json')
  writeFileSync(workflow, JSON.stringify(IMAGE_WORKFLOW))
  const clock = createManualClock()
  const engines = { [kind]: word.replace(/http:\/\/[\d.:]+/, url).replace('workflow.json', workflow) }
  const { models, engine } = await openModels({ engines }, { clock })
  const model = `rushes/preview-${kind}`
  const document = models.find((each) => each.document.name === model)?.document
  const input = { ...(document && defaultsOf(document.input)), prompt: 'a fox' }
  const files = await clock.runUntil(engine.render(jobOf({ kind, input, run: { id: 'run_1', model } })))
  expect(files.map(({ contentType }) => contentType.split('/')[0])).toEqual([kind])
})
