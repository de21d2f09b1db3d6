/** The slots that are found in a workflow without a document. */
import { expect, test } from 'vitest'
import { findSlots, frameRateOf } from '../../../src/service/engines/comfyui/find-slots.js'
import { slotText } from '../../../src/service/engines/comfyui/workflow.js'
import { FLUX_WORKFLOW, IMAGE_WORKFLOW, VIDEO_WORKFLOW } from './comfyui-workflows.js'

const found = (workflow: object) => {
  const { slots, problems } = findSlots(workflow as Parameters<typeof findSlots>[0])
  return {
    ...Object.fromEntries(Object.entries(slots).map(([name, each]) => [name, each.map(slotText)])),
    ...(problems.length > 0 && { problems }),
  }
}

const SIZE = { width: ['5.inputs.width'], height: ['5.inputs.height'] }
const IMAGE = { prompt: ['6.inputs.text'], ...SIZE, seed: ['3.inputs.seed'] }

test.each<[name: string, workflow: object, expected: object]>([
  ['a picture', IMAGE_WORKFLOW, IMAGE],
  ['a film', VIDEO_WORKFLOW, { ...IMAGE, frames: ['5.inputs.length'] }],
  [
    'a guider, and values in nodes of their own',
    FLUX_WORKFLOW,
    {
      prompt: ['31.inputs.value'],
      width: ['30.inputs.value'],
      height: ['27.inputs.height'],
      seed: ['25.inputs.noise_seed'],
    },
  ],
  [
    'a reference',
    { ...IMAGE_WORKFLOW, 10: { class_type: 'LoadImage', inputs: { image: 'example.png', upload: 'image' } } },
    { ...IMAGE, references: ['10.inputs.image'] },
  ],
  [
    'an encoder with two texts',
    { ...IMAGE_WORKFLOW, 6: { class_type: 'CLIPTextEncodeSDXL', inputs: { text_g: 'a', text_l: 'a' } } },
    { ...IMAGE, prompt: ['6.inputs.text_g', '6.inputs.text_l'] },
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
  [
    'two encoders',
    {
      ...IMAGE_WORKFLOW,
      3: { ...IMAGE_WORKFLOW[3], inputs: { ...IMAGE_WORKFLOW[3].inputs, positive: ['12', 0] } },
      12: {
        class_type: 'ConditioningCombine',
        inputs: { conditioning_1: ['6', 0], conditioning_2: ['7', 0] },
      },
    },
    {
      ...SIZE,
      seed: IMAGE.seed,
      problems: ['has more than one node for the prompt (candidates: 6 CLIPTextEncode, 7 CLIPTextEncode)'],
    },
  ],
  [
    'no sampler',
    { 6: IMAGE_WORKFLOW[6] },
    {
      problems: [
        'has no node for the prompt (candidates: 6 CLIPTextEncode)',
        'has no node for the size (candidates: none)',
      ],
    },
  ],
  [
    'two references',
    {
      ...IMAGE_WORKFLOW,
      10: { class_type: 'LoadImage', inputs: { image: 'a.png' } },
      11: { class_type: 'LoadImageMask', inputs: { image: 'b.png' } },
    },
    {
      ...IMAGE,
      problems: [
        'has more than one node for the reference image (candidates: 10 LoadImage, 11 LoadImageMask)',
      ],
    },
  ],
])('%s', (_, workflow, expected) => expect(found(workflow)).toEqual(expected))

test('the frame rate is that of the node that writes the film', () => {
  expect([VIDEO_WORKFLOW, IMAGE_WORKFLOW].map((each) => frameRateOf(each))).toEqual([16, undefined])
  const two = { ...VIDEO_WORKFLOW, 11: { class_type: 'VHS_VideoCombine', inputs: { frame_rate: 24 } } }
  expect(frameRateOf(two)).toBeUndefined()
})
