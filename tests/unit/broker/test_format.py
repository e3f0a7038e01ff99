"""The first users, made before a broker runs: what --add-scram takes, and that it may be done again and again."""

import fcntl

import pytest

from pylog_spark import scram
from pylog_spark.broker.config import broker_config
from pylog_spark.broker.format import FirstUser, FormatError, add_users, parse
from pylog_spark.cluster.security import documents
from pylog_spark.cluster.store.file import FileStore
from pylog_spark.scram import Mechanism

SHA_256, SHA_512 = Mechanism.SCRAM_SHA_256, Mechanism.SCRAM_SHA_512
SECRET = "swordfish"


@pytest.mark.parametrize(
    ("argument", "user"),
    [
        ("SCRAM-SHA-256=[name=admin,password=swordfish]", FirstUser("admin", SHA_256, 8192, SECRET)),
        (' SCRAM-SHA-512=[name="a b",iterations=4096,password="swordfish"] ', FirstUser("a b", SHA_512, 4096, SECRET)),
        ("SCRAM-SHA-512=[name=admin]", FirstUser("admin", SHA_512)),
        (
            "SCRAM-SHA-256=[name=admin,salt=c2FsdA==,saltedpassword=AAAA]",
            FirstUser("admin", SHA_256, 8192, None, b"salt", b"\0\0\0"),
        ),
        ("SCRAM-SHA-256=[name=a=b,password=c=d]", FirstUser("a=b", SHA_256, 8192, "c=d")),
    ],
)
def test_what_kafka_takes_is_understood(argument, user):
    assert parse(argument) == user


@pytest.mark.parametrize(
    "argument",
    [
        "swordfish",
        "SCRAM-SHA-1=[name=admin,password=swordfish]",
        "SCRAM-SHA-256=name=admin,password=swordfish",
        "SCRAM-SHA-256=[name=admin,password=swordfish",
        "SCRAM-SHA-256=[password=swordfish]",
        "SCRAM-SHA-256=[name=,password=swordfish]",
        "SCRAM-SHA-256=[name=admin,swordfish]",
        "SCRAM-SHA-256=[name=admin,pasword=swordfish]",
        "SCRAM-SHA-256=[name=admin,iterations=swordfish]",
        "SCRAM-SHA-256=[name=admin,iterations=4095,password=swordfish]",
        "SCRAM-SHA-256=[name=admin,iterations=16385,password=swordfish]",
        "SCRAM-SHA-256=[name=admin,salt=swordfish!]",
        "SCRAM-SHA-256=[name=admin,saltedpassword=swordfish]",
        "SCRAM-SHA-256=[name=admin,salt=c2FsdA==,saltedpassword=swordfish!]",
        "SCRAM-SHA-256=[name=admin,salt=c2FsdA==,saltedpassword=AAAA,password=swordfish]",
    ],
)
def test_anything_else_is_refused_with_a_sentence_that_has_nothing_of_it(argument):
    with pytest.raises(FormatError) as refused:
        parse(argument)
    (sentence,) = refused.value.args
    assert "--add-scram" in sentence
    assert sentence.endswith(".")
    assert SECRET not in sentence
    assert SECRET not in repr(refused.value)


def add(directory, *users):
    return add_users(str(directory), broker_config(), users)


def stored(directory):
    store = FileStore(directory)
    return [documents.decode(path, store.get(path).data) for path in store.paths(documents.USERS)]


def test_the_first_user_is_made_in_a_new_directory_and_stays_when_it_is_made_again(tmp_path):
    admin = FirstUser("admin", SHA_512, password=SECRET)
    assert add(tmp_path / "data", admin) == ["User admin can log in by SCRAM-SHA-512."]
    (user,) = stored(tmp_path / "data")
    credential = user.credentials[SHA_512]
    salted = scram.salted_password(SHA_512, SECRET, credential.salt, credential.iterations)
    assert scram.keys(SHA_512, salted) == (credential.stored_key, credential.server_key)
    cluster = (tmp_path / "data" / ".pylog" / "cluster.json").read_bytes()
    assert add(tmp_path / "data", admin) == ["User admin can already log in by SCRAM-SHA-512; nothing was changed."]
    assert stored(tmp_path / "data") == [user]
    assert (tmp_path / "data" / ".pylog" / "cluster.json").read_bytes() == cluster
    again = FirstUser("admin", SHA_256, password="other")
    assert add(tmp_path / "data", admin, again)[1] == "User admin can log in by SCRAM-SHA-256."
    assert stored(tmp_path / "data")[0].credentials.keys() == {SHA_256, SHA_512}


def test_another_password_is_not_set_silently(tmp_path):
    add(tmp_path, FirstUser("admin", SHA_512, password=SECRET))
    before = stored(tmp_path)
    with pytest.raises(FormatError, match=r"with another password .* and was not changed") as refused:
        add(tmp_path, FirstUser("admin", SHA_512, password="cuttlefish"))
    assert "fish" not in str(refused.value)
    assert stored(tmp_path) == before


def test_a_salted_password_is_taken_as_it_is(tmp_path):
    salted = scram.salted_password(SHA_256, SECRET, b"salt", 4096)
    user = FirstUser("admin", SHA_256, 4096, None, b"salt", salted)
    add(tmp_path, user)
    assert add(tmp_path, FirstUser("admin", SHA_256, password=SECRET))[0].endswith("nothing was changed.")
    with pytest.raises(FormatError, match="A salted password of SCRAM-SHA-256 has 32 bytes, not 3"):
        add(tmp_path, FirstUser("bob", SHA_256, 4096, None, b"salt", b"\0\0\0"))


def test_a_directory_that_a_broker_uses_is_left_alone(tmp_path):
    with open(tmp_path / ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(FormatError, match="A broker uses the data directory"):
            add(tmp_path, FirstUser("admin", SHA_512, password=SECRET))
    assert stored(tmp_path) == []


def test_a_directory_of_apache_kafka_is_left_alone(tmp_path):
    (tmp_path / "meta.properties").write_text("#\nversion=1\ncluster.id=x\nnode.id=1\n")
    with pytest.raises(FormatError, match="belongs to Apache Kafka"):
        add(tmp_path, FirstUser("admin", SHA_512, password=SECRET))
    assert not (tmp_path / ".pylog").exists()


def test_without_a_place_there_is_a_sentence():
    with pytest.raises(FormatError, match="--data-dir DIR, or --zookeeper"):
        add_users(None, broker_config(), [FirstUser("admin", SHA_512, password=SECRET)])
