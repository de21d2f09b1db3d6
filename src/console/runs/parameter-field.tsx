import { TextAreaField, TextField } from '../components/field.js'
import { RadioGroup } from '../components/radio-group.js'
import { type FormField, shapeOf } from './form.js'

export interface ParameterFieldProps {
  readonly field: FormField
  readonly value: string
  readonly error: string | undefined
  readonly onChange: (value: string) => void
}

/** A parameter of the model, in the control that its schema asks for. The prompt and the images have their own. */
export function ParameterField({ field, value, error, onChange }: ParameterFieldProps) {
  const { label, hint, control, isRequired, standard } = field
  const text = { label, hint, error, isOptional: !isRequired, value, onInput: onChange }
  if (control === 'ratio' || control === 'choice')
    return <ChoiceField {...{ field, value, error, onChange }} />
  if (control === 'switch') return <ChoiceField {...{ field: switchField(field), value, error, onChange }} />
  if (control === 'list') return <TextAreaField {...text} hint={`${hint}. One per line.`} />
  if (control === 'number')
    return <TextField {...text} type="number" step="any" placeholder={standard ?? ''} />
  return <TextField {...text} placeholder={standard ?? ''} />
}

/** A boolean that is left out is not the same as one that is false. */
const switchField = (field: FormField): FormField => ({ ...field, choices: ['true', 'false'] })

const WORDS: Readonly<Record<string, string>> = { true: 'On', false: 'Off' }

function ChoiceField({ field, value, error, onChange }: ParameterFieldProps) {
  const { label, control, choices, standard, name, isRequired } = field
  const unit = name === 'duration' ? ' s' : ''
  const shown = choices.map((choice) => ({
    value: choice,
    label: (
      <>
        {control === 'ratio' && <Shape ratio={choice} />}
        {(control === 'switch' ? WORDS[choice] : choice) + unit}
      </>
    ),
  }))
  // Without a known default there must be a way to choose none.
  const none = standard === undefined && !isRequired ? [{ value: '', label: 'Default' }] : []
  return (
    <RadioGroup
      label={label}
      value={value === '' ? (standard ?? '') : value}
      choices={[...none, ...shown]}
      error={error}
      onChange={onChange}
    />
  )
}

function Shape({ ratio }: { readonly ratio: string }) {
  const { width, height } = shapeOf(ratio)
  return (
    <span class="ratio-box" aria-hidden="true">
      <span style={{ width: `${width}px`, height: `${height}px` }} />
    </span>
  )
}
