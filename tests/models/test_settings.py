import pytest
from pydantic import SecretStr, ValidationError

from models import Models, ModelSettings
from models.errors import ModelRefused
from models.settings import EmbeddingSettings, PerplexitySettings, Price, SkillModel, StoredKey, is_loopback

LOCAL = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_nothing_configured_is_offline() -> None:
    settings = ModelSettings()
    assert settings.resolve("score_document") is None
    assert settings.configured() == {}


def test_unknown_skill_names_the_known_ones() -> None:
    with pytest.raises(
        ValidationError, match=r"unknown skill 'score_documents'; skills: score_document, .*judge_facts"
    ):
        ModelSettings(skills={"score_documents": SkillModel(model="m")})


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://host/v1",
        "ftp://user:pw@host/v1",
        "http://",
        "http://user:pw@host/v1",
        "http://h:99999999/",
        "https://host/v1?api-key=pw@",
        "https://host/v1#pw@",
    ],
)
def test_wrong_addresses_are_refused_without_showing_secrets(url: str) -> None:
    for section in (ModelSettings, EmbeddingSettings, PerplexitySettings, SkillModel):
        with pytest.raises(ValidationError) as caught:
            section.model_validate({"base_url": url, "model": "m"})
        assert "pw@" not in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        {"temperature": -0.1},
        {"temperature": 2.1},
        {"top_p": 0},
        {"top_p": 1.1},
        {"draws": 0},
        {"timeout_s": 0},
        {"max_output_tokens": 0},
        {"limits": {"concurrency": 0}},
        {"budget": {"max_cost": -1}},
        {"modell": "typo"},
        {"tokens": "no/such/tokenizer.json"},
        {"base_url": LOCAL},
        {"embeddings": {"index": "endpoint"}},
        {"perplexity": {"backend": "completions"}},
    ],
)
def test_out_of_range_or_incomplete(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ModelSettings.model_validate(values)


def test_a_skill_inherits_what_it_does_not_set() -> None:
    settings = ModelSettings(
        base_url=LOCAL,
        model="big",
        top_p=0.9,
        skills={"segment_text": SkillModel(model="small", temperature=0.7, draws=4)},
    )
    own, other = settings.resolve("segment_text"), settings.resolve("list_facts")
    assert own is not None
    assert other is not None
    assert (own.model, own.temperature, own.top_p, own.draws, own.base_url) == ("small", 0.7, 0.8, 4, LOCAL)
    assert (other.model, other.temperature, other.draws) == ("big", 0.0, 1)


def test_one_skill_alone_may_have_a_model() -> None:
    settings = ModelSettings(skills={"judge_facts": SkillModel(base_url=LOCAL, model="judge")})
    assert list(settings.configured()) == ["judge_facts"]


def test_a_remote_endpoint_needs_a_key_and_the_message_names_the_settings() -> None:
    with pytest.raises(ValidationError, match=r"OPENAI_API_KEY, HCHEM_MODELS__API_KEY or .*_block"):
        ModelSettings(model="gpt")
    assert ModelSettings(model="gpt", api_key=SecretStr("k")).resolve("judge_facts") is not None


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-environment")
    resolved = ModelSettings(model="gpt").resolve("judge_facts")
    assert resolved is not None
    assert resolved.api_key is not None
    assert resolved.api_key.get_secret_value() == "sk-from-environment"


def test_the_default_key_is_not_sent_to_another_origin() -> None:
    settings = ModelSettings(
        base_url="https://one.example/v1",
        model="m",
        api_key=SecretStr("key-of-one"),
        skills={
            "judge_facts": SkillModel(base_url=LOCAL),
            "list_facts": SkillModel(base_url="https://one.example/v2"),
        },
    )
    other, same = settings.resolve("judge_facts"), settings.resolve("list_facts")
    assert other is not None
    assert same is not None
    assert other.api_key is None
    assert same.api_key is not None
    with pytest.raises(ValidationError, match=r"no API key for https://two\.example"):
        ModelSettings(
            base_url="https://one.example/v1",
            model="m",
            api_key=SecretStr("key-of-one"),
            skills={"judge_facts": SkillModel(base_url="https://two.example/v1")},
        )


def test_secrets_are_not_shown() -> None:
    settings = ModelSettings(base_url=LOCAL, model="m", api_key=SecretStr("sk-secret-123"))
    resolved = settings.resolve("judge_facts")
    for text in (repr(settings), str(settings), settings.model_dump_json(), repr(resolved)):
        assert "sk-secret" not in text
    with pytest.raises(ValidationError) as caught:
        ModelSettings.model_validate({"api_key": "sk-secret-123", "temperature": "sk-secret-123"})
    assert "sk-secret" not in str(caught.value)


def test_identity_has_no_address_and_no_key() -> None:
    settings = ModelSettings(
        base_url=LOCAL, model="m", api_key=SecretStr("sk-secret-123"), extra={"top_k": 20}
    )
    resolved = settings.resolve("list_facts")
    assert resolved is not None
    assert resolved.identity() == "m/max_output_tokens=4096,temperature=0.0,top_k=20"


def test_a_money_limit_needs_prices() -> None:
    with pytest.raises(ValidationError, match="max_cost needs a price"):
        ModelSettings.model_validate({"base_url": LOCAL, "model": "m", "budget": {"max_cost": 1}})


def test_price() -> None:
    price = Price(input=2, cached=0.5, output=8)
    assert price.cost(1_000_000, 400_000, 100_000) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.1 * 8)
    assert Price(input=2, output=0).cost(1_000_000, 1_000_000, 0) == pytest.approx(2)


def test_embedding_defaults_and_endpoint() -> None:
    assert EmbeddingSettings().backend("cohesion") == "usem3"
    assert EmbeddingSettings().backend("index") == "ngram+usem3"
    given = EmbeddingSettings(base_url=LOCAL, model="bge", cohesion="usem3")
    assert (given.backend("cohesion"), given.backend("index")) == ("usem3", "endpoint")
    assert PerplexitySettings().backend == "ngram"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:1/v1", True),
        ("http://127.0.0.1", True),
        ("http://[::1]:8/", True),
        ("http://10.0.0.1", False),
    ],
)
def test_loopback(url: str, expected: bool) -> None:
    assert is_loopback(url) is expected


# --- keys of embeddings and perplexity, keys in blocks --------------------------------

REMOTE = "https://two.example/v1"
ENDPOINTS = {
    "embeddings": (
        {"index": "endpoint", "model": "e"},
        "HCHEM_EMBEDDINGS__API_KEY or embeddings.api_key_block",
    ),
    "perplexity": (
        {"backend": "completions", "model": "p"},
        "HCHEM_MODELS__PERPLEXITY__API_KEY or models.perplexity.api_key_block",
    ),
}


@pytest.mark.parametrize("name", ENDPOINTS)
def test_remote_embeddings_and_perplexity_need_a_key_too(name: str) -> None:
    section, words = ENDPOINTS[name]
    with pytest.raises(ValidationError, match=r"no API key for https://two\.example") as caught:
        ModelSettings.model_validate({name: {**section, "base_url": REMOTE}})
    assert words in str(caught.value)
    for enough in ({"api_key": "k"}, {"api_key_block": "b"}):
        ModelSettings.model_validate({name: {**section, "base_url": REMOTE, **enough}})
    ModelSettings.model_validate({name: {**section, "base_url": LOCAL}})


@pytest.mark.parametrize("name", ENDPOINTS)
def test_the_default_key_serves_its_own_origin_and_no_other(name: str) -> None:
    section, _ = ENDPOINTS[name]
    home = {"base_url": "https://one.example/v1", "model": "m", "api_key": "key-of-one"}
    same = ModelSettings.model_validate({**home, name: {**section, "base_url": "https://one.example/v2"}})
    key = getattr(same, name).api_key
    assert key.get_secret_value() == "key-of-one"
    with pytest.raises(ValidationError, match="no API key for https://two"):
        ModelSettings.model_validate({**home, name: {**section, "base_url": REMOTE}})
    own = ModelSettings.model_validate({**home, name: {**section, "base_url": REMOTE, "api_key": "own"}})
    assert getattr(own, name).api_key.get_secret_value() == "own"


def test_a_section_given_by_the_caller_is_not_changed() -> None:
    embeddings = EmbeddingSettings(base_url="https://one.example/v1", model="e")
    settings = ModelSettings(
        base_url="https://one.example/v1", model="m", api_key=SecretStr("k"), embeddings=embeddings
    )
    assert settings.embeddings.api_key is not None
    assert embeddings.api_key is None


def test_a_block_stands_for_the_key_and_is_read_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-environment")
    settings = ModelSettings.model_validate(
        {
            "base_url": "https://one.example/v1",
            "model": "m",
            "api_key_block": "default-block",
            "skills": {"judge_facts": {"base_url": REMOTE, "api_key_block": "judge-block"}},
        }
    )
    read: list[tuple[str, str]] = []

    def reader(block: str, setting: str) -> str:
        read.append((block, setting))
        return f"key in {block}"

    for path, key in settings.keys().items():
        assert isinstance(key, StoredKey)
        key.setting, key.read = f"{path}_block", reader
    other, own = settings.resolve("list_facts"), settings.resolve("judge_facts")
    assert other is not None
    assert own is not None
    assert other.api_key is not None
    assert own.api_key is not None
    assert other.api_key != own.api_key
    for shown in (
        repr(settings),
        settings.model_dump_json(),
        str(settings.model_dump(mode="json")),
        repr(own),
    ):
        assert "key in" not in shown
        assert "sk-from" not in shown
    assert settings.model_dump(mode="json")["api_key"] == "**********"
    assert read == []
    for _ in range(2):
        assert own.api_key.get_secret_value() == "key in judge-block"
        assert other.api_key.get_secret_value() == "key in default-block"
    assert read == [
        ("judge-block", "models.skills.judge_facts.api_key_block"),
        ("default-block", "models.api_key_block"),
    ]
    for shown in (repr(settings), settings.model_dump_json(), str(settings.model_dump()), repr(own)):
        assert "key in" not in shown


def test_a_key_that_is_given_goes_before_a_block() -> None:
    settings = ModelSettings.model_validate({"api_key": "given", "api_key_block": "b"})
    assert settings.api_key is not None
    assert settings.api_key.get_secret_value() == "given"


def test_a_block_that_nobody_reads_is_a_clear_error_that_halts() -> None:
    key = ModelSettings.model_validate({"api_key_block": "b"}).api_key
    assert key is not None
    with pytest.raises(ModelRefused, match="secret block 'b'") as caught:
        key.get_secret_value()
    assert (caught.value.reason, caught.value.halts) == ("settings", True)


def test_an_address_without_encryption_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    settings = ModelSettings.model_validate(
        {
            "base_url": "http://chat.example/v1",
            "model": "m",
            "api_key": "k",
            "embeddings": {"base_url": "http://vectors.example/v1", "model": "e", "api_key": "k"},
            "perplexity": {
                "backend": "completions",
                "base_url": "http://losses.example/v1",
                "model": "p",
                "api_key": "k",
            },
            "skills": {"judge_facts": {"base_url": "https://judge.example/v1", "api_key": "k"}},
        }
    )
    for _ in range(2):
        Models(settings)
    warned = [record.args[0] for record in caplog.records if "not encrypted" in record.msg]  # type: ignore[index]
    assert warned == ["http://chat.example/v1", "http://losses.example/v1", "http://vectors.example/v1"]


def test_without_a_default_endpoint_the_default_key_goes_to_one_origin_only() -> None:
    def key(**skills: str) -> list[bool]:
        made = {
            name: SkillModel(base_url=url, model="m", api_key=SecretStr("own") if "two" in url else None)
            for name, url in skills.items()
        }
        settings = ModelSettings(api_key=SecretStr("k-default"), skills=made)
        found = [settings.resolve(name) for name in skills]
        return [bool(r and r.api_key and r.api_key.get_secret_value() == "k-default") for r in found]

    assert key(list_facts="https://one.example/v1") == [True]
    assert key(list_facts="https://one.example/v1", judge_facts="https://one.example/v2") == [True, True]
    with pytest.raises(ValidationError, match=r"no API key for https://one\.example/v1"):
        key(list_facts="https://one.example/v1", judge_facts="https://two.example/v1")
