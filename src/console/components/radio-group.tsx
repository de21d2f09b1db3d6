import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

export interface RadioChoice<Value extends string> {
  readonly value: Value
  readonly label: ComponentChildren
}

export interface RadioGroupProps<Value extends string> {
  readonly label: string
  readonly isLabelHidden?: boolean
  readonly hint?: string
  readonly error?: string | undefined
  readonly value: Value
  readonly choices: readonly RadioChoice<Value>[]
  readonly onChange: (value: Value) => void
}

/** A choice of few, all of them in sight, that looks like buttons. */
export function RadioGroup<Value extends string>(props: RadioGroupProps<Value>) {
  const { label, isLabelHidden = false, hint, error, value, choices, onChange } = props
  const id = useId()
  const described = [error !== undefined && `${id}-error`, hint !== undefined && `${id}-hint`].filter(Boolean)
  return (
    <fieldset
      class="fieldset field"
      aria-describedby={described.length === 0 ? undefined : described.join(' ')}
      aria-invalid={error === undefined ? undefined : true}
    >
      <legend class={isLabelHidden ? 'visually-hidden' : undefined}>{label}</legend>
      <div class="radio-group">
        {choices.map((choice) => (
          <label key={choice.value} class="radio">
            <input
              type="radio"
              class="visually-hidden"
              name={id}
              value={choice.value}
              checked={choice.value === value}
              onChange={() => onChange(choice.value)}
            />
            <span class="radio-face">{choice.label}</span>
          </label>
        ))}
      </div>
      {error !== undefined && (
        <p class="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </fieldset>
  )
}
