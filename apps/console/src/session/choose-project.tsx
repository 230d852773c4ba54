// The form for a project, for a token of several projects.
import { useSignal } from '@preact/signals';
import { goTo, hrefOf } from '../shell/route.ts';
import { projects } from './session.ts';

export function ChooseProject() {
  const name = useSignal('');
  if (projects.value.length > 0)
    return (
      <section class="sign-in pane">
        <h1>Choose a project</h1>
        <ul>
          {projects.value.map((project) => (
            <li key={project}>
              <a href={hrefOf(project)}>{project}</a>
            </li>
          ))}
        </ul>
      </section>
    );
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    if (name.value !== '') goTo(hrefOf(name.value));
  };
  return (
    <form class="sign-in pane" onSubmit={onSubmit}>
      <h1>Choose a project</h1>
      <p>The token is for all projects.</p>
      <label>
        Project
        <input
          autocomplete="off"
          spellcheck={false}
          value={name.value}
          onInput={(event) => {
            name.value = event.currentTarget.value;
          }}
        />
      </label>
      <button type="submit" class="primary">
        Open
      </button>
    </form>
  );
}
