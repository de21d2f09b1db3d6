/** Form fields. Label above, hint and error below; both are linked to the field for screen readers. */
import type { ComponentChildren, InputHTMLAttributes, Ref } from 'preact'
import { useId, useState } from 'preact/hooks'
import { Button } from './button.js'
import { Icon } from './icon.js'

interface Notes {
  readonly hint?: ComponentChildren
  /** Error message for the value, with the correction. */
  readonly error?: string | undefined
}

export interface FieldText extends Notes {
  readonly label: string
  readonly isOptional?: boolean | undefined
  /** True to show the label only to screen readers, as for filters above a list. */
  readonly isLabelHidden?: boolean | undefined
  readonly class?: string | undefined
}

/** Attributes for the input element. */
export interface ControlProps {
  readonly id: string
  readonly 'aria-describedby': string | undefined
  readonly 'aria-invalid': true | undefined
}

export interface FieldProps extends FieldText {
  readonly children: (control: ControlProps) => ComponentChildren
}

export function Field(props: FieldProps) {
  const { label, hint, error, isOptional, isLabelHidden, class: more = '', children } = props
  const id = useId()
  return (
    <div class={`field ${more}`}>
      <label for={id} class={isLabelHidden ? 'visually-hidden' : undefined}>
        {label}
        {isOptional && <span class="optional">optional</span>}
      </label>
      {children({
        id,
        'aria-describedby': describedBy(id, props),
        'aria-invalid': error === undefined ? undefined : true,
      })}
      <FieldNotes {...{ id, hint, error }} />
    </div>
  )
}

function FieldNotes({ id, hint, error }: Notes & { readonly id: string }) {
  return (
    <>
      {error !== undefined && (
        <p class="field-error" id={`${id}-error`}>
          <Icon name="alert" size={14} /> {error}
        </p>
      )}
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </>
  )
}

/** Ids of the hint and the error. */
function describedBy(id: string, { hint, error }: Notes): string | undefined {
  const ids = [hint !== undefined && `${id}-hint`, error !== undefined && `${id}-error`].filter(Boolean)
  return ids.length === 0 ? undefined : ids.join(' ')
}

type InputAttributes = Pick<
  InputHTMLAttributes<HTMLInputElement>,
  'autocomplete' | 'inputMode' | 'max' | 'maxLength' | 'min' | 'name' | 'placeholder' | 'spellcheck' | 'step'
>

export interface TextFieldProps extends FieldText, InputAttributes {
  readonly value: string
  readonly onInput: (value: string) => void
  readonly type?: 'text' | 'email' | 'search' | 'number' | 'date' | 'url'
  readonly inputRef?: Ref<HTMLInputElement>
}

export function TextField(props: TextFieldProps) {
  const { value, onInput, type = 'text', inputRef, ...more } = props
  const { text, attributes } = splitText(more)
  return (
    <Field {...text}>
      {(control) => (
        <input
          {...attributes}
          {...control}
          ref={inputRef ?? null}
          class={value === '' ? 'input is-empty' : 'input'}
          // The cast is needed: Preact's types accept each `type` value, but not their union.
          type={type as 'text'}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}

export interface TextAreaFieldProps extends FieldText {
  readonly value: string
  readonly onInput: (value: string) => void
  readonly rows?: number
  readonly isCode?: boolean
  readonly name?: string
  readonly placeholder?: string
}

export function TextAreaField(props: TextAreaFieldProps) {
  const { value, onInput, rows = 3, isCode = false, ...more } = props
  const { text, attributes } = splitText(more)
  return (
    <Field {...text}>
      {(control) => (
        <textarea
          {...attributes}
          {...control}
          class={isCode ? 'input code' : 'input'}
          spellcheck={!isCode}
          rows={rows}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}

export interface Choice<Value extends string = string> {
  readonly value: Value
  readonly label: string
}

export interface SelectFieldProps<Value extends string> extends FieldText {
  readonly value: Value
  readonly choices: readonly Choice<Value>[]
  readonly onChange: (value: Value) => void
}

export function SelectField<Value extends string>(props: SelectFieldProps<Value>) {
  const { value, choices, onChange, ...text } = props
  return (
    <Field {...text}>
      {(control) => (
        <span class="select">
          <select
            {...control}
            class="input"
            value={value}
            onChange={(event) => onChange(event.currentTarget.value as Value)}
          >
            {choices.map((choice) => (
              <option key={choice.value} value={choice.value}>
                {choice.label}
              </option>
            ))}
          </select>
          <Icon name="down" />
        </span>
      )}
    </Field>
  )
}

export interface PasswordFieldProps extends FieldText {
  readonly value: string
  readonly onInput: (value: string) => void
  readonly autocomplete: 'current-password' | 'new-password'
}

/** Password field with a button that shows the password. */
export function PasswordField(props: PasswordFieldProps) {
  const { value, onInput, autocomplete, ...text } = props
  const [isShown, setShown] = useState(false)
  return (
    <Field {...text}>
      {(control) => (
        <span class="input-with-button">
          <input
            {...control}
            class="input"
            type={(isShown ? 'text' : 'password') as 'password'}
            name={autocomplete}
            autocomplete={autocomplete}
            spellcheck={false}
            autocapitalize="off"
            value={value}
            onInput={(event) => onInput(event.currentTarget.value)}
          />
          <Button
            kind="ghost"
            size="small"
            icon={isShown ? 'eye-off' : 'eye'}
            label={isShown ? 'Hide the password' : 'Show the password'}
            isPressed={isShown}
            onClick={() => setShown(!isShown)}
          />
        </span>
      )}
    </Field>
  )
}

function splitText<More>(props: FieldText & More) {
  const { label, hint, error, isOptional, isLabelHidden, class: more, ...attributes } = props
  return { text: { label, hint, error, isOptional, isLabelHidden, class: more }, attributes }
}

/** Focuses the first field with an error, after the errors have been drawn. */
export function focusFirstError(form: HTMLFormElement): void {
  const field = '[aria-invalid]:not(fieldset), fieldset[aria-invalid] :is(input, button)'
  setTimeout(() => form.querySelector<HTMLElement>(field)?.focus())
}

interface FormProps {
  readonly class?: string
  readonly isValid: boolean
  /** Called at each try, also of a form that is not valid: from then on, its fields show their errors. */
  readonly onTry: () => void
  /** Called at each try of a valid form. */
  readonly onSubmit: () => void
  readonly children: ComponentChildren
}

/** A form with its own checks in place of the browser's. */
export function Form({ class: name, isValid, onTry, onSubmit, children }: FormProps) {
  return (
    <form
      class={name}
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        onTry()
        if (isValid) onSubmit()
        else focusFirstError(event.currentTarget)
      }}
    >
      {children}
    </form>
  )
}

interface RadioChoice<Value extends string> {
  readonly value: Value
  readonly label: ComponentChildren
}

interface RadioGroupProps<Value extends string> extends Notes {
  readonly label: string
  readonly value: Value
  readonly choices: readonly RadioChoice<Value>[]
  readonly onChange: (value: Value) => void
}

/** Radio buttons for a few choices, drawn like buttons. */
export function RadioGroup<Value extends string>(props: RadioGroupProps<Value>) {
  const { label, hint, error, value, choices, onChange } = props
  const id = useId()
  return (
    <fieldset
      class="fieldset field"
      aria-describedby={describedBy(id, props)}
      aria-invalid={error === undefined ? undefined : true}
    >
      <legend>{label}</legend>
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
      <FieldNotes {...{ id, hint, error }} />
    </fieldset>
  )
}
