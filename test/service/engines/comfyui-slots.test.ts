/** The slots that are found in a workflow without a document, beside the shapes of test/engines/real-workflows. */
import { expect, test } from 'vitest'
import { findSlots, frameRateOf } from '../../../src/service/engines/comfyui/find-slots.js'
import { slotText } from '../../../src/service/engines/comfyui/workflow.js'
import { IMAGE_WORKFLOW, VIDEO_WORKFLOW } from './comfyui-workflows.js'

const found = (workflow: object) => {
  const { slots, problems } = findSlots(workflow as Parameters<typeof findSlots>[0])
  return {
    ...Object.fromEntries(Object.entries(slots).map(([name, each]) => [name, each.map(slotText)])),
    ...(problems.length > 0 && { problems }),
  }
}

const SIZE = { width: ['5.inputs.width'], height: ['5.inputs.height'] }
const SAMPLED = { seed: ['3.inputs.seed'], steps: ['3.inputs.steps'], guidance: ['3.inputs.cfg'] }
const NEGATIVE = { negative_prompt: ['7.inputs.text'] }
const IMAGE = { prompt: ['6.inputs.text'], ...NEGATIVE, ...SIZE, ...SAMPLED }
const titled = (node: object, title: string) => ({ ...node, _meta: { title } })
/** A second sampler, as a model that refines the picture has it. */
const refined = (inputs: object) => ({
  ...IMAGE_WORKFLOW,
  8: { class_type: 'VAEDecode', inputs: { samples: ['11', 0], vae: ['4', 2] } },
  11: { ...IMAGE_WORKFLOW[3], inputs: { ...IMAGE_WORKFLOW[3].inputs, latent_image: ['3', 0], ...inputs } },
})

test.each([
  [
    'a negative condition that is made from the prompt',
    {
      ...IMAGE_WORKFLOW,
      7: { class_type: 'ConditioningZeroOut', inputs: { conditioning: ['6', 0] } },
    },
    { prompt: ['6.inputs.text'], ...SIZE, ...SAMPLED },
  ],
  [
    'two samplers with other steps, which keep them',
    refined({ steps: 8 }),
    {
      ...{ prompt: IMAGE.prompt, ...NEGATIVE, ...SIZE },
      seed: ['3.inputs.seed', '11.inputs.seed'],
      guidance: ['3.inputs.cfg', '11.inputs.cfg'],
    },
  ],
  [
    'titles, before the links',
    {
      ...refined({ steps: 8, positive: ['12', 0] }),
      6: titled(IMAGE_WORKFLOW[6], 'prompt'),
      9: {
        class_type: 'SaveImage',
        inputs: { images: ['8', 0], more: ['11', 0], all: ['20', 0], other: ['21', 0] },
      },
      5: { class_type: 'EmptyLatentImage', inputs: { width: ['22', 0], height: ['23', 0] } },
      11: titled(refined({ steps: 8, positive: ['12', 0] })[11], 'Steps'),
      12: titled({ class_type: 'CLIPTextEncode', inputs: { text: 'a dog' } }, 'prompt'),
      20: titled({ class_type: 'LoadImage', inputs: { image: 'b.png' } }, 'Reference 2'),
      21: titled({ class_type: 'LoadImage', inputs: { image: 'a.png' } }, 'reference 1'),
      22: titled({ class_type: 'PrimitiveInt', inputs: { value: 640 } }, 'width'),
      23: titled({ class_type: 'PrimitiveInt', inputs: { value: 480 } }, 'height'),
      24: titled({ class_type: 'SaveImage', inputs: { images: ['8', 0] } }, 'seed'),
      25: titled({ class_type: 'EmptyLatentImage', inputs: { width: 1, height: 1 } }, 'size'),
    },
    {
      prompt: ['6.inputs.text', '12.inputs.text'],
      negative_prompt: ['7.inputs.text'],
      width: ['22.inputs.value'],
      height: ['23.inputs.value'],
      seed: ['3.inputs.seed', '11.inputs.seed'],
      steps: ['11.inputs.steps'],
      guidance: ['3.inputs.cfg', '11.inputs.cfg'],
      references: ['21.inputs.image', '20.inputs.image'],
    },
  ],
  [
    'a node between the sampler and the encoder, with a link in a circle',
    {
      ...IMAGE_WORKFLOW,
      3: { ...IMAGE_WORKFLOW[3], inputs: { ...IMAGE_WORKFLOW[3].inputs, positive: ['12:1', 0] } },
      '12:1': {
        class_type: 'ControlNetApplyAdvanced',
        inputs: { positive: ['6', 0], conditioning: ['12:1', 0] },
      },
    },
    IMAGE,
  ],
])('%s', (_, workflow, expected) => expect(found(workflow)).toEqual(expected))

test('the frame rate is that of the node that writes the film', () => {
  expect([VIDEO_WORKFLOW, IMAGE_WORKFLOW].map((each) => frameRateOf(each))).toEqual([16, undefined])
  const two = { ...VIDEO_WORKFLOW, 11: { class_type: 'VHS_VideoCombine', inputs: { frame_rate: 24 } } }
  expect(frameRateOf(two)).toBeUndefined()
})
